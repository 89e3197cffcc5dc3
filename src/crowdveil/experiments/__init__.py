"""Code that only experiments of papers need. It is found by name; no other module imports it."""
