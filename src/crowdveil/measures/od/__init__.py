"""Measures of anonymized flows beside the original ones."""
