"""What only an experiment of a paper needs. It is found by name; no other module imports it."""
