"""Compiled loops of the analyses."""
