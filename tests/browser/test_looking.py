"""The checks themselves: a page with each fault is told from one without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from browser.test_pages import amiss

Open = Callable[..., playwright.Page]

BEHIND = "<details><table><tbody><tr><td>1</td></tr></tbody></table></details>"


def figure(texts: str, name: str = 'aria-label="a drawing"') -> str:
    return f'<figure><svg role="img" {name} width="300" height="80">{texts}</svg>{BEHIND}</figure>'


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (figure('<text x="9" y="20">one</text><text x="99" y="20">two</text>'), []),
        (figure('<text x="9" y="20">one</text><text x="19" y="20">two</text>'), ["overlapping"]),
        (figure('<text x="9" y="95">one</text>').replace("<svg", '<svg overflow="visible"')
         .replace("</svg>", "</svg><figcaption>below</figcaption>"), ["overlapping"]),
        (figure('<text x="-90" y="20">one</text>'), ["clipped"]),
        (figure('<text x="9" y="20" fill="#999">one</text>'), ["faint"]),
        (figure('<text x="9" y="20" font-size="9">one</text>'), ["small"]),
        (figure("", ""), ["unnamed"]),
        (figure("").replace(BEHIND, ""), ["unnamed"]),
        ('<p style="width: 900px">wide</p>', ["scrolling"]),
        ('<p style="white-space: nowrap">' + "word " * 99 + "</p>", ["clipped", "scrolling"]),
        ('<p style="color: #888">faint</p>', ["faint"]),
        ('<div style="background: #000"><p style="color: #444">faint</p></div>', ["faint"]),
        ('<p style="overflow: hidden; width: 40px">Donaudampfschiff</p>', ["clipped"]),
        ('<div style="overflow-x: auto"><p style="width: 900px">scrolls</p></div>', []),
    ],
)  # fmt: skip
def test_a_fault_is_found(opened: Open, tmp_path: Path, body: str, kinds: list[str]) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"<!DOCTYPE html><title>a</title><body>{body}", encoding="utf-8")
    assert sorted(amiss(opened(file, 400))) == kinds
