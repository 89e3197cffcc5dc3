"""Compiled loops of the attacks."""
