"""The colors of all figures and pages. A color means the same everywhere.

A dark blue and a light orange: eyes that do not see red or green tell them apart, and so does grey
print. On a dark page it is the other way around: the blue is the light one.
"""

from __future__ import annotations

__all__ = [
    "ALLOWED",
    "BASIC",
    "DARK",
    "FAINT",
    "GREEN",
    "GREY",
    "INK",
    "LIGHT",
    "OCHRE",
    "PALE",
    "PAPER",
    "PRINT",
    "PURPLE",
    "REALIZED",
]

REALIZED, BASIC = "#0b5a75", "#d07a2e"
#: A range: what a budget allows.
ALLOWED = "#bfd9e3"
#: Basic composition, where there are two kinds of it.
PALE = "#f0cfae"
#: What else is compared; with dashes or marks of its own, because grey print does not tell them.
OCHRE, PURPLE, GREEN, GREY = "#b8921a", "#6b4a9e", "#3d8b4f", "#888888"
PAPER, INK, FAINT = "#ffffff", "#222222", "#595959"

#: By the names that style sheets have for them.
LIGHT = {
    "realized": REALIZED, "basic": BASIC, "allowed": ALLOWED, "ochre": OCHRE, "purple": PURPLE,
    "green": GREEN, "grey": GREY, "paper": PAPER, "ink": INK, "faint": FAINT, "line": "#c4c8ca",
}  # fmt: skip

DARK = {
    "realized": "#8fd3f0", "basic": "#d07a2e", "allowed": "#234653", "ochre": "#dcb84a",
    "purple": "#b79ce6", "green": "#7cc98f", "grey": "#8e9499", "paper": "#14181a",
    "ink": "#e8eaeb", "faint": "#a9b0b4", "line": "#4a5257",
}  # fmt: skip

#: Black on white, for papers; marks differ by their shapes.
PRINT = {**dict.fromkeys(LIGHT, "#000000"), "paper": PAPER, "line": "#dddddd"}
