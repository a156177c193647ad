"""Sphinx configuration."""

from expost import __version__

project = "expost"
author = "The expost developers"
copyright = "The expost developers"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinxcontrib.katex",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# MathML needs neither fonts nor a style sheet, so the pages are complete without a network.
katex_options = "output: 'mathml'"
katex_css_path = "katex-math.css"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
html_static_path = ["_static"]
html_css_files = ["math.css"]
html_theme = "furo"
html_title = f"expost {release}"
exclude_patterns = ["_build"]
