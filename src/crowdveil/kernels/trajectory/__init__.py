"""Compiled loops of the trajectory solvers and measures."""
