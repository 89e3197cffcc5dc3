"""The only place of the version: the package, manifests, reports and the service take it from here."""

__version__ = "0.1.0"
