"""The template of all pages: HTML that needs nothing from anywhere else.

There is no script, no font and no other file, and the policy in the head forbids them. A page
starts with what it is about, from when, on which budget and of which content. Every figure has
words for those who do not see it, and its numbers as a table. One style sheet is for light and dark
screens, narrow and wide ones, and paper.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from expost.report.chart import Chart
from expost.report.style import EDGES, STYLE

__all__ = [
    "Header",
    "beside",
    "bullets",
    "figure",
    "note",
    "page",
    "paragraph",
    "section",
    "table",
    "text",
]

_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)


@dataclass(frozen=True, slots=True)
class Header:
    """What every page says first, as text."""

    about: str
    summary: str
    """What there is to know, in a few sentences."""
    file: str
    """The name of what it was made from."""
    date: str
    content_id: str
    budget: str
    facts: Sequence[tuple[str, str]] = ()
    """More of the same, by name."""
    first: Sequence[str] = ()
    """Sentences that nobody must miss, such as that a budget was not kept."""


def page(header: Header, *body: str) -> str:
    """A document with this header; the body is HTML."""
    facts = [
        ("file", header.file),
        ("date", header.date),
        ("content id", header.content_id),
        ("budget", header.budget),
        *header.facts,
    ]
    content = "\n".join(body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(header.about)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{text(header.about)}</h1>
{f'<p class="breach" role="note">{text(" ".join(header.first))}</p>' if header.first else ""}
<p class="first">{text(header.summary)}</p>
{_facts(facts)}
</header>
<main>
{content}
</main>
</body>
</html>
"""


def section(title: str, *parts: str, level: int = 2) -> str:
    """Parts below a heading."""
    return "\n".join([f"<h{level}>{text(title)}</h{level}>", *parts])


def paragraph(*sentences: str) -> str:
    return f"<p>{text(' '.join(sentences))}</p>" if any(sentences) else ""


def note(*sentences: str) -> str:
    """A paragraph for those who want to know exactly."""
    return f'<p class="note">{text(" ".join(sentences))}</p>'


def bullets(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>"


def figure(chart: Chart, *, alt: str, caption: str, numbers: str) -> str:
    """A chart with its legend and a line below it.

    ``alt`` says in words what is to be seen, ``numbers`` is the table of what is drawn.
    """
    legend = "".join(
        f'<li><svg class="swatch" width="24" height="12" aria-hidden="true">{swatch}</svg>'
        f"{text(label)}</li>"
        for swatch, label in chart.legend
    )
    edges = EDGES[chart.margin]
    return (
        f'<figure class="drawn">{f"<ul class=legend>{legend}</ul>" if legend else ""}'
        f'<svg class="chart {chart.margin}" role="img" aria-label="{escape(alt)}" '
        f'height="{edges.above + chart.height + edges.below}">{chart.plot()}</svg>'
        f"<figcaption>{text(caption)}</figcaption>"
        f"<details><summary>The numbers</summary>{numbers}</details></figure>"
    )


def beside(*figures: str) -> str:
    """Figures side by side, where there is room."""
    return f'<div class="beside">{"".join(figures)}</div>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    words: bool = False,
) -> str:
    """A table of numbers, or of ``words``; it scrolls on its own where it is too wide."""
    kind = ' class="words"' if words else ""
    lines = "".join(f"<tr>{_cells(row, 'td')}</tr>" for row in rows)
    above = f"<figcaption>{text(caption)}</figcaption>" if caption else ""
    name = escape(caption or ", ".join(filter(None, head)))
    return (
        f'<figure>{above}<div class="wide" tabindex="0" role="region" aria-label="{name}">'
        f"<table{kind}><thead><tr>{_cells(head, 'th')}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></figure>"
    )


def text(words: object) -> str:
    """Text as HTML; a number stays on one line with its sign."""
    return escape(str(words)).replace(" %", "&nbsp;%").replace("ε = ", "ε&nbsp;=&nbsp;")


def _facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what they are, in two columns; a long word is broken where the screen ends."""
    rows = (
        f'<tr><th scope="row">{text(name)}</th><td>{text(what)}</td></tr>' for name, what in pairs
    )
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'


def _cells(cells: Sequence[object], kind: str) -> str:
    return "".join(f"<{kind}>{text(cell)}</{kind}>" for cell in cells)
