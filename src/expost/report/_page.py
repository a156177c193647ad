"""The template of all pages, and its parts: functions that return HTML.

A page loads no script, font or other file, and the security policy in its head forbids them. It
starts with its verdict, followed by the date, the budget and the content id. Every figure has a
description for readers who do not see it, and a table of its numbers. One style sheet serves light
and dark screens, narrow and wide ones, and paper.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from expost import __version__
from expost.errors import make_printable
from expost.report._chart import EDGES, Chart, chart_style
from expost.report._palette import DARK, LIGHT

__all__ = [
    "COMPARE_FILES",
    "STYLE",
    "bullets",
    "escape_text",
    "figure",
    "note",
    "page",
    "paragraph",
    "section",
    "side_by_side",
    "table",
]


def _declare_variables(colors: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {color};" for name, color in colors.items())


_PADDING = "\n".join(
    f".chart.{name} {{ padding: {' '.join(f'{pixels}px' for pixels in edges)}; }}"
    for name, edges in EDGES.items()
)

STYLE = f"""
:root {{ color-scheme: light dark; {_declare_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_declare_variables(DARK)} }} }}
body {{ font-family: system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5;
  overflow-wrap: break-word; }}
h1 {{ font-size: 1.4rem; line-height: 1.3; }} h2 {{ font-size: 1.2rem; margin-top: 2.5rem; }}
h3 {{ font-size: 1rem; margin-top: 2rem; }} p, li, h1, figcaption {{ max-width: 46rem; }}
.verdict {{ font-size: 1.1rem; font-weight: 600; border-left: .3rem solid var(--realized);
  padding: .2rem 0 .2rem .8rem; }}
.breach {{ border-color: var(--basic); }} .lead {{ margin: .5rem 0; }}
.note, figcaption, details {{ font-size: .9rem; }} .note, figcaption {{ color: var(--faint); }}
figure {{ margin: 1.2rem 0; }} .drawn {{ max-width: 46rem; }}
.beside {{ display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }}
/* Legends, charts and captions of neighbors are at the same heights. */
.beside .drawn {{ display: grid; grid-template-rows: subgrid; grid-row: span 4; }}
.beside .drawn > * {{ min-width: 0; }}
.legend {{ list-style: none; margin: 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .1rem 1.3rem; font-size: .9rem; }}
.legend li {{ display: flex; align-items: baseline; gap: .5rem; }}
.swatch {{ flex: none; overflow: visible; }}
.chart {{ display: block; width: 100%; box-sizing: border-box; overflow: visible; }}
{_PADDING}
details {{ margin: .3rem 0; }} summary {{ cursor: pointer; width: max-content; padding: .2rem 0; }}
:focus-visible {{ outline: 3px solid var(--basic); outline-offset: 2px; border-radius: 2px; }}
.wide {{ overflow-x: auto; background-repeat: no-repeat;
  background-size: 2.5rem 100%, 2.5rem 100%, .8rem 100%, .8rem 100%;
  background-attachment: local, local, scroll, scroll;
  background-image: linear-gradient(to right, var(--paper) 30%, transparent),
    linear-gradient(to left, var(--paper) 30%, transparent),
    linear-gradient(to right, var(--line), transparent),
    linear-gradient(to left, var(--line), transparent);
  background-position: 0 0, 100% 0, 0 0, 100% 0; }}
table {{ border-collapse: collapse; margin: .4rem 0; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .15rem .9rem .15rem 0; text-align: right; vertical-align: top; }}
th {{ border-bottom: 1px solid var(--faint); font-weight: 600; vertical-align: bottom; }}
th:first-child, td:first-child, .words th, .words td, .facts th, .facts td {{ text-align: left; }}
table:not(.words, .facts) td:first-child {{ min-width: 6.5rem; }}
.words td:nth-child(2) {{ min-width: 12rem; }}
.words td:nth-child(4) {{ white-space: nowrap; }}
.facts th {{ border: 0; white-space: nowrap; vertical-align: top; color: var(--faint);
  font-weight: 400; }}
.facts td {{ overflow-wrap: anywhere; }}
@media print {{
  html {{ font-size: 10pt; }} body {{ margin: 0; padding: 0; max-width: none; }}
  .wide {{ overflow: visible; background: none; }}
  .beside, .beside .drawn {{ display: block; }}
  .drawn:not(:has(details[open])), .chart, tr, .facts {{ break-inside: avoid; }}
  h2, h3, .legend {{ break-after: avoid; }}
  /* Numbers that the reader has opened are printed. */
  summary, figure details:not([open]) {{ display: none; }}
  .facts details::details-content {{ content-visibility: visible; }}
}}
{chart_style({name: f"var(--{name})" for name in LIGHT})}
"""

_SECURITY_POLICY = "; ".join(
    [
        "default-src 'none'",
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}'",
        "base-uri 'none'",
        "form-action 'none'",
    ]
)


def page(
    *body: str,
    title: str,
    verdict: str,
    breach: bool = False,
    lead: Iterable[str] = (),
    file: str,
    date: str,
    ids: Iterable[tuple[str, str, str]],
    budget: str,
    facts: Iterable[tuple[str, str]] = (),
) -> str:
    """Write a page.

    Args:
        body: The sections below the head, as HTML; all other arguments are text.
        title: The title.
        verdict: The most important result, in one or two sentences.
        breach: Whether the verdict is that a promise was broken.
        lead: A few more results, each in a short line.
        file: The name of the file that the page describes.
        date: The date of the page.
        ids: Names, digits and explanations of digests: the content, and how to compare it.
        budget: The budget, in words.
        facts: Other facts, by name.
    """
    all_facts = [("file", file), ("date", date), ("budget", budget), *facts]
    all_facts.append(("expost version", __version__))
    sections = "\n".join(body)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_SECURITY_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_escape_plain(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape_text(title)}</h1>
<p class="verdict{" breach" * breach}" role="note">{escape_text(verdict)}</p>
{"".join(f'<p class="lead">{escape_text(line)}</p>' for line in lead)}
{_write_facts(all_facts, ids)}
</header>
<main>
{sections}
</main>
</body>
</html>
"""


def section(title: str, *parts: str, level: int = 2) -> str:
    """Put parts below a heading."""
    return "\n".join([f"<h{level}>{escape_text(title)}</h{level}>", *parts])


def paragraph(*sentences: str) -> str:
    """Join sentences into a paragraph; return an empty string if there are none."""
    return f"<p>{escape_text(' '.join(sentences))}</p>" if any(sentences) else ""


def note(*sentences: str) -> str:
    """Join sentences into a paragraph in small print."""
    return f'<p class="note">{escape_text(" ".join(sentences))}</p>'


def bullets(lines: Iterable[str]) -> str:
    """List lines with bullets."""
    return f"<ul>{''.join(f'<li>{escape_text(line)}</li>' for line in lines)}</ul>"


def figure(chart: Chart, *, alt: str, caption: str, data_table: str) -> str:
    """Draw a chart with its legend and a caption.

    Args:
        chart: The chart.
        alt: Its content in words, for readers who do not see it.
        caption: A line below it.
        data_table: The table of the numbers that are drawn.
    """
    legend = "".join(
        f'<li><svg class="swatch" width="24" height="12" aria-hidden="true">{swatch}</svg>'
        f"{escape_text(label)}</li>"
        for swatch, label in chart.legend
    )
    edges = EDGES[chart.margin]
    return (
        f'<figure class="drawn">{f"<ul class=legend>{legend}</ul>" if legend else ""}'
        f'<svg class="chart {chart.margin}" role="img" aria-label="{_escape_plain(alt)}" '
        f'height="{edges.above + chart.height + edges.below}">{chart.plot()}</svg>'
        f"<figcaption>{escape_text(caption)}</figcaption>"
        f"<details><summary>The numbers</summary>{data_table}</details></figure>"
    )


def side_by_side(*figures: str) -> str:
    """Put figures side by side where the screen is wide enough."""
    return f'<div class="beside">{"".join(figures)}</div>'


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    caption: str = "",
    of_text: bool = False,
) -> str:
    """Write a table, of numbers unless it is ``of_text``; it scrolls where it is too wide."""
    css_class = ' class="words"' if of_text else ""
    lines = "".join(f"<tr>{_write_cells(row, 'td')}</tr>" for row in rows)
    above = f"<figcaption>{escape_text(caption)}</figcaption>" if caption else ""
    name = _escape_plain(caption or ", ".join(filter(None, head)))
    return (
        f'<figure>{above}<div class="wide" tabindex="0" role="region" aria-label="{name}">'
        f"<table{css_class}><thead><tr>{_write_cells(head, 'th')}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></figure>"
    )


def escape_text(content: object) -> str:
    """Escape a text for HTML, and keep each number on one line with its sign."""
    escaped = _escape_plain(content).replace(" %", "&nbsp;%").replace("ε = ", "ε&nbsp;=&nbsp;")
    return escaped.replace("± ", "±&nbsp;").replace(" ±", "&nbsp;±")


def _escape_plain(content: object) -> str:
    """Escape a text for an attribute; line breaks and control codes become question marks."""
    return escape(make_printable(str(content)))


COMPARE_FILES = "SHA-256 of the file. To compare it, run sha256sum"
#: How many digits of a digest are shown before it is unfolded.
_SHOWN_DIGITS = 12


def _write_facts(facts: Iterable[tuple[str, str]], ids: Iterable[tuple[str, str, str]]) -> str:
    """Write facts by name in two columns, then digests: shortened, explained and in full."""
    cells = [(name, escape_text(fact)) for name, fact in facts]
    for name, digits, explanation in ids:
        hint = f'<span class="note">{escape_text(explanation)}</span>'
        unfolded = f"<details><summary>All digits</summary>{escape_text(digits)}</details>"
        cells.append((name, f"{escape_text(digits[:_SHOWN_DIGITS])}… {hint}{unfolded}"))
    rows = (
        f'<tr><th scope="row">{escape_text(name)}</th><td>{cell}</td></tr>' for name, cell in cells
    )
    return f'<table class="facts"><tbody>{"".join(rows)}</tbody></table>'


def _write_cells(cells: Sequence[object], tag: str) -> str:
    return "".join(f"<{tag}>{escape_text(cell)}</{tag}>" for cell in cells)
