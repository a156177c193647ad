"""Sphinx configuration."""

import json

from expost import __version__

project = "expost"
author = "The expost developers"
copyright = "The expost developers"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.katex",
]
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# MathML needs neither fonts nor a style sheet, so the pages are complete without a network.
# Thin spaces get lost there, also those that TeX puts around the name of a function.
_NAMES = {name: rf"\mathrm{{{name}}}" for name in ("cosh", "exp", "ln", "log", "sinh", "tanh")}
_NAMES |= {name: rf"\operatorname*{{{name}}}" for name in ("max", "min")}
_MACROS = {r"\,": r"\hspace{0.17em}"} | {
    f"\\{name}": rf"\,{shape}\@ifnextchar({{}}{{\@ifnextchar_{{}}{{\,}}}}"
    for name, shape in _NAMES.items()
}
katex_options = f"output: 'mathml', macros: {json.dumps(_MACROS)}"
katex_css_path = "katex-math.css"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ExactLike": "ExactLike"}  # by its name, not by its six types
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
pygments_dark_style = "github-dark"
html_title = f"expost {release}"
exclude_patterns = ["_build"]
