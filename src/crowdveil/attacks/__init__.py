"""What adversaries with some knowledge find out: of trajectories before and after anonymising, and of releases of flows."""
