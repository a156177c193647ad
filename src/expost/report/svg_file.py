"""A chart as a file of its own: SVG with its legend, in the colours of a light page."""

from __future__ import annotations

from html import escape

from expost.report.chart import Chart
from expost.report.palette import LIGHT
from expost.report.style import EDGES, chart_style

__all__ = ["svg_file"]

_LINE = 22


def svg_file(*charts: tuple[str, Chart], alt: str, width: int = 720) -> str:
    """Charts with their titles, one below the other; ``alt`` says in words what is to be seen.

    A line of a legend has two entries, so that a label has room for some forty characters.
    """
    parts, top = [], 12
    for title, chart in charts:
        if title:
            parts.append(f'<text x="24" y="{top + 11}" class="title name">{escape(title)}</text>')
            top += _LINE
        for number, (swatch, label) in enumerate(chart.legend):
            left, row = 24 + number % 2 * width // 2, top + number // 2 * _LINE
            parts.append(
                f'<svg x="{left}" y="{row}" width="24" height="12" overflow="visible">'
                f"{swatch}</svg>"
                f'<text x="{left + 34}" y="{row + 11}" class="title">{escape(label)}</text>'
            )
        top += -(-len(chart.legend) // 2) * _LINE
        edges = EDGES[chart.margin]
        parts.append(
            f'<svg x="{edges.left}" y="{top + edges.above}" '
            f'width="{width - edges.left - edges.right}" '
            f'height="{chart.height}" overflow="visible">{chart.plot()}</svg>'
        )
        top += edges.above + chart.height + edges.below + 12
    style = f"{chart_style(LIGHT)}\n.name {{ font-weight: 600; }}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" '
        f'height="{top}" role="img" aria-label="{escape(alt)}"><style>{style}</style>'
        f'<rect width="{width}" height="{top}" fill="{LIGHT["paper"]}"/>{"".join(parts)}</svg>\n'
    )
