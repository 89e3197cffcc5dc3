"""Pictures for papers and reports, one module for each family: PNG or SVG."""
