"""The colors: told apart by everybody, on light and dark pages and in grey print."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from expost.report._palette import DARK, LIGHT

THEMES = pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])

# What is left of a color, in linear light, for eyes without one kind of cone (Viénot, Brettel and
# Mollon 1999, for red and green; Machado, Oliveira and Fernandes 2009, for blue).
LACKING = {
    "red": [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    "green": [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
    "blue": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}


def linear(color: str) -> NDArray[np.float64]:
    parts = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(first: str, other: str) -> float:
    low, high = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) for color in (first, other))
    return (high + 0.05) / (low + 0.05)


def apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The distance in CIELAB, where 2 is just seen and 20 is another color."""
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    lab = []
    for each in (one, other):
        xyz = to_xyz @ np.clip(each, 0, 1) / [0.9505, 1.0, 1.089]
        x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        lab.append(np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)]))
    return float(np.linalg.norm(lab[0] - lab[1]))


@THEMES
def test_letters_are_read_and_marks_are_seen_on_the_page(colors: dict[str, str]) -> None:
    for letters in ("ink", "faint"):
        assert contrast(colors[letters], colors["paper"]) >= 4.5
    for mark in ("realized", "basic"):
        assert contrast(colors[mark], colors["paper"]) >= 3


@THEMES
def test_grey_print_tells_the_loss_from_basic_composition(colors: dict[str, str]) -> None:
    assert contrast(colors["realized"], colors["basic"]) >= 1.9


@THEMES
@pytest.mark.parametrize("cone", LACKING)
def test_eyes_without_one_kind_of_cone_tell_colors_apart(colors: dict[str, str], cone: str) -> None:
    names = ("realized", "basic", "allowed", "ink", "paper")
    perceived = {name: np.array(LACKING[cone]) @ linear(colors[name]) for name in names}
    for first, second in itertools.combinations(names, 2):
        assert apart(perceived[first], perceived[second]) >= 12, (first, second)


def test_no_other_module_names_a_color() -> None:
    root = Path(__file__).parents[2]
    files = [
        path
        for folder in ("src", "benchmarks", "docs/figures")
        for path in (root / folder).rglob("*.py")
        if path.name != "_palette.py"
    ]
    assert len(files) > 100
    named = [path for path in files if re.search(r'"#[0-9a-f]{3,8}"', path.read_text("utf-8"))]
    assert named == []
