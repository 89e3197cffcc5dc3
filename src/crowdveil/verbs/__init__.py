"""The verbs: one typed function and one record each, from which commands, jobs, run files and forms are drawn."""
