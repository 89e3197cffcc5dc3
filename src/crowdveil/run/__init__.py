"""Runs: the sequence of stages from the input files to a verified release."""
