"""Simulate adversaries with background knowledge: against trajectories before and after anonymization, and flow releases."""
