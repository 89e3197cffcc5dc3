"""Compatibility with other software: its names, files, routes and commands, and nothing else."""
