"""Analyses of a release, one file each; the registry lists them."""
