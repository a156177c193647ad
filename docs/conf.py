"""Sphinx configuration."""

import json
import re

from sphinx.application import Sphinx

from expost import __version__

project = "expost"
author = "The expost developers"
copyright = "The expost developers"  # noqa: A001 - the name that Sphinx reads
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
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
# Copied examples have no prompts and no output, so they can be pasted.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_theme = "furo"
html_theme_options = {"top_of_page_buttons": []}
pygments_dark_style = "github-dark"
html_title = f"expost {release}"
exclude_patterns = ["_build"]


def name_aliases(*event: object) -> tuple[object, object]:
    """Show a type alias in a signature by its name, even where the source quotes it."""
    signature, annotation = (
        re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) if isinstance(text, str) else text
        for text in event[-2:]
    )
    return signature, annotation


def setup(app: Sphinx) -> None:
    """Connect the hooks of this configuration."""
    app.connect("autodoc-process-signature", name_aliases)
