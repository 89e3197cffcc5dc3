"""Run files: names and values in TOML or JSON."""
