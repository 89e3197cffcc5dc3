"""Measure the loss of utility: one file for each measure, or for related ones. The registry lists them."""
