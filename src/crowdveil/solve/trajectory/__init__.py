"""Solvers of trajectories."""
