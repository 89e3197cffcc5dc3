"""The Python API: the names of the command line, with underscores. `crowdveil` imports them when they are asked for."""
