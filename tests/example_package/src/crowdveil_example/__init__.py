"""An example of a package with a method of its own."""
