"""What adversaries with some knowledge find out: of trajectories before and after anonymizing, and of releases of flows."""
