"""The style sheet of all pages, and what of it a drawing needs that is a file of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from expost.report.palette import DARK, LIGHT

__all__ = ["EDGES", "MARKS", "STYLE", "chart_style"]

MARKS = ("realized", "basic", "allowed", "ochre", "purple", "green", "grey", "ink")
"""What marks can be coloured with."""


class Edges(NamedTuple):
    """Pixels around a plot, for its lettering."""

    above: int
    right: int
    below: int
    left: int


EDGES = {
    "bare": Edges(8, 22, 26, 22),
    "numbers": Edges(30, 22, 46, 52),
    "names": Edges(30, 22, 46, 84),
}
"""By what stands to the left of the plot."""


def chart_style(colours: Mapping[str, str]) -> str:
    """How the marks of charts look, in these colours by name."""
    marks = " ".join(
        f".{name} {{ fill: {colours[name]}; }} .stroke.{name} {{ stroke: {colours[name]}; }}"
        for name in MARKS
    )
    return f"""{marks}
.stroke {{ fill: none; stroke-linejoin: round; vector-effect: non-scaling-stroke; }}
.ring.stroke {{ fill: none; stroke-width: 2; }}
.hollow.stroke {{ fill: {colours["paper"]}; stroke-width: 3; }}
.range {{ fill-opacity: .3; }} .range.allowed {{ fill-opacity: 1; }}
.grid {{ stroke: {colours["line"]}; stroke-width: 1; }}
text {{ font: 13px system-ui, sans-serif; fill: {colours["faint"]}; }}
text.title {{ fill: {colours["ink"]}; }}"""


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


_PADDING = "\n".join(
    f".chart.{name} {{ padding: {' '.join(f'{pixels}px' for pixels in edges)}; }}"
    for name, edges in EDGES.items()
)

STYLE = f"""
:root {{ color-scheme: light dark; {_variables(LIGHT)} }}
@media screen and (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}
body {{ font-family: system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5;
  overflow-wrap: break-word; }}
h1 {{ font-size: 1.4rem; line-height: 1.3; }} h2 {{ font-size: 1.2rem; margin-top: 2.5rem; }}
h3 {{ font-size: 1rem; margin-top: 2rem; }} p, li, h1, figcaption {{ max-width: 46rem; }}
.first {{ font-size: 1.1rem; }} .note, figcaption, details {{ font-size: .9rem; }}
.note, figcaption {{ color: var(--faint); }}
.breach {{ font-size: 1.1rem; font-weight: 600; border-left: .3rem solid var(--ink);
  padding: .2rem 0 .2rem .8rem; }}
figure {{ margin: 1.2rem 0; }} .drawn {{ max-width: 46rem; }}
.beside {{ display: grid; gap: 0 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }}
/* Legends, charts and captions of neighbours are at the same heights. */
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
  summary, details:not([open]) {{ display: none; }}
}}
{chart_style({name: f"var(--{name})" for name in LIGHT})}
"""
