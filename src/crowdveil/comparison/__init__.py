"""Compare methods on the same data: a tidy table and two plots."""
