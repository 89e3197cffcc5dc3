"""Measure the utility that a release of trajectories lost."""
