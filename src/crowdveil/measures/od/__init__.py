"""Measure anonymized flows against the original flows."""
