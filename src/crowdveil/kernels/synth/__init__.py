"""Compiled loops of the synthetic data."""
