"""What can be learnt from a release: one file an analysis; the registry lists them."""
