"""Adversaries who read a release of flows; one file each."""
