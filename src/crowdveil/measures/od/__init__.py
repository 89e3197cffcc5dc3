"""Measures of anonymised flows beside the original ones."""
