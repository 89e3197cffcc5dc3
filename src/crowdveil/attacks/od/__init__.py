"""Attack releases of flows; one file for each adversary."""
