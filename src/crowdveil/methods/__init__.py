"""The methods, one module each; see `crowdveil.list_methods()` for a table of them."""
