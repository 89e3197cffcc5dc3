"""Settings of the site; `make docs-site` builds it from a copy of this folder (tools/site.py)."""

from crowdveil import __version__

project = "Crowdveil"
author = "the Crowdveil contributors"
version = release = __version__
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]
"""Messages of programs are shown as `text`, formulas as plain code: no lexer has to understand them."""
html_theme = "furo"
html_title = f"Crowdveil {__version__}"
html_show_sphinx = False
html_copy_source = False
