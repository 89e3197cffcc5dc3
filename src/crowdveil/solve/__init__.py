"""Solvers: from the data model to the groups and boxes of a release."""
