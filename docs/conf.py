"""Settings of the site: `make docs` builds it into build/site, with warnings as errors."""

import sys
from pathlib import Path

from crowdveil import __version__

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "Crowdveil"
author = "the Crowdveil contributors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click", "registry"]
exclude_patterns = ["notebooks/*"]
autodoc_typehints = "none"
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]
"""Messages of programs are shown as `text`, formulas as plain code: no lexer has to understand them."""
html_theme = "furo"
html_title = f"Crowdveil {__version__}"
html_show_sphinx = False
html_copy_source = False
