"""Compatibility with mdl-anonymizer of the MobiDataLab project: names, run files, routes of the service, commands."""
