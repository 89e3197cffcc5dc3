"""Attack trajectories with background knowledge of locations; one file for each adversary."""
