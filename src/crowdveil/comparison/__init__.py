"""Compare methods on the same data: tables, sweeps and plots."""
