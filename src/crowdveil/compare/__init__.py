"""Methods compared on the same data: tables, sweeps and plots."""
