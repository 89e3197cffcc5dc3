"""Code that only the experiments of papers need; of the package, only `cli/experiment.py` and the registry name it."""
