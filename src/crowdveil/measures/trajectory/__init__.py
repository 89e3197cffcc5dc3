"""What a release of trajectories lost."""
