"""Keep a ledger of the releases of one data source, so that no small group can be derived from several of them."""
