"""How Sphinx builds these pages; `make docs` runs it with warnings as errors."""

from importlib.metadata import version as installed_version

project = "Perago"
author = "The Perago authors"
copyright = author
release = version = installed_version("perago")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
nitpicky = True

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
# Building needs no network, so names of other projects cannot be looked up.
nitpick_ignore_regex = [(r"py:.*", r"(?!perago\b).*")]

# Dashes are options of commands: --help stays --help.
smartquotes_action = "qe"

html_theme = "furo"
html_title = f"Perago {release}"
html_show_sphinx = False
