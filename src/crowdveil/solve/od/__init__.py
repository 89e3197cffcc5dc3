"""Solvers of OD matrices."""
