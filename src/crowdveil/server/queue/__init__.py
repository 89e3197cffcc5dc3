"""The queue of jobs: its database, its files and its data directory."""
