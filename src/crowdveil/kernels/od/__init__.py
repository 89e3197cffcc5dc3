"""Compiled loops of the OD solvers and measures."""
