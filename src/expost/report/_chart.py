"""Charts as SVG whose lettering stays readable at every width.

Marks are placed in percentages of the plot, and text has its own size: a narrow screen gets a
narrow plot with the same letters. Colors are names of the palette, so that a chart follows the
page that it is on. A legend is no part of the drawing: it is text, and breaks where the screen
ends.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

from expost.report._palette import LIGHT

__all__ = [
    "EDGES",
    "MARKS",
    "Axis",
    "Band",
    "Chart",
    "Dots",
    "FullLine",
    "HorizontalBars",
    "Mark",
    "Polyline",
    "VerticalBars",
    "chart_style",
    "svg_file",
]

#: The colors of marks.
MARKS = ("realized", "basic", "allowed", "ochre", "purple", "green", "grey", "ink")


class Edges(NamedTuple):
    """Pixels around a plot, for its lettering."""

    above: int
    right: int
    below: int
    left: int


#: By the lettering around the plot.
EDGES = {
    "bare": Edges(8, 22, 26, 22),
    "numbers": Edges(30, 22, 46, 52),
    "names": Edges(30, 22, 46, 84),
    "rows": Edges(8, 22, 46, 22),
}


def chart_style(colors: Mapping[str, str]) -> str:
    """Write the style of marks, in these colors by name."""
    marks = " ".join(
        f".{name} {{ fill: {colors[name]}; }} .stroke.{name} {{ stroke: {colors[name]}; }}"
        for name in MARKS
    )
    return f"""{marks}
.stroke {{ fill: none; stroke-linejoin: round; vector-effect: non-scaling-stroke; }}
.ring.stroke {{ fill: none; stroke-width: 2; }}
.hollow.stroke {{ fill: {colors["paper"]}; stroke-width: 3; }}
.range {{ fill-opacity: .3; }} .range.allowed {{ fill-opacity: 1; }}
.grid {{ stroke: {colors["line"]}; stroke-width: 1; }}
text {{ font: 13px system-ui, sans-serif; fill: {colors["faint"]}; }}
text.title {{ fill: {colors["ink"]}; }}"""


Point = tuple[float, float]

#: The largest number of labels that fit on a narrow screen.
_MOST_TICKS = 5

#: The height of a line of text in pixels.
_LINE = 22

#: The usual width of a letter in pixels.
_LETTER = 7

#: The ticks of an axis of shares from 0 to 1.
PERCENT_TICKS = [(tenth / 10, f"{10 * tenth} %" if tenth % 5 == 0 else "") for tenth in range(11)]

#: The length of a short label.
_SHORT = 5


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with its ends, its label and its ticks, which are at round numbers by default."""

    label: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]] | None = None

    @property
    def labeled(self) -> Sequence[tuple[float, str]]:
        return _choose_ticks(self.low, self.high) if self.ticks is None else self.ticks

    @classmethod
    def of_counts(cls, label: str, highest: float) -> Axis:
        """Return an axis for counts from 0 to the highest, with ticks at whole numbers only."""
        return cls(label, 0, 1.05 * max(1, highest)).with_whole_ticks()

    def with_whole_ticks(self) -> Axis:
        """Return this axis with ticks at whole numbers only."""
        ticks = [(at, text) for at, text in self.labeled if at == int(at)]
        return Axis(self.label, self.low, self.high, ticks)

    def share(self, position: float) -> float:
        """Return the position between both ends, which are 0 and 1."""
        return (position - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True)
class Polyline:
    """A line through points, with ``dashes`` as SVG writes them, such as "6 4"."""

    points: Sequence[Point]
    color: str
    label: str = ""
    dashes: str = ""
    width: float = 2

    def svg(self, x: Axis, y: Axis) -> str:
        return _draw_path(self.points, x, y, self._look) if self.points else ""

    def swatch(self) -> str:
        return f'<path d="M0 6H24"{self._look}/>'

    @property
    def _look(self) -> str:
        dashes = f' stroke-dasharray="{self.dashes}"' if self.dashes else ""
        return f' class="stroke {self.color}" stroke-width="{self.width:g}"{dashes}'


@dataclass(frozen=True, slots=True)
class Band:
    """The area between lower and upper ends, which are points in the same order."""

    lower: Sequence[Point]
    upper: Sequence[Point]
    color: str
    label: str = ""

    def svg(self, x: Axis, y: Axis) -> str:
        around = [*self.lower, *reversed(self.upper)]
        return _draw_path(around, x, y, f' class="range {self.color}"', end="Z")

    def swatch(self) -> str:
        return f'<rect width="24" height="12" class="range {self.color}"/>'


@dataclass(frozen=True, slots=True)
class Dots:
    """A mark on each point: full, hollow, a ring around what is there, or a diamond."""

    points: Sequence[Point]
    color: str
    label: str = ""
    shape: str = "full"
    size: float = 4

    def svg(self, x: Axis, y: Axis) -> str:
        return "".join(self._dot(_locate_point(*point, x, y)) for point in self.points)

    def swatch(self) -> str:
        return self._dot(("12", "6"))

    def _dot(self, position: tuple[str, str]) -> str:
        if self.shape == "diamond":
            # A square that is turned around its middle, wherever that is.
            half = self.size
            return (
                f'<svg x="{position[0]}" y="{position[1]}" overflow="visible"><path '
                f'd="M0 {-half:g}L{half:g} 0L0 {half:g}L{-half:g} 0Z" class="{self.color}"/></svg>'
            )
        kind = "" if self.shape == "full" else f"{self.shape} stroke "
        return (
            f'<circle cx="{position[0]}" cy="{position[1]}" r="{self.size:g}" '
            f'class="{kind}{self.color}"/>'
        )


@dataclass(frozen=True, slots=True)
class VerticalBars:
    """Vertical bars from zero, between their edges: a histogram.

    On top of others they start at ``floors``.
    """

    edges: Sequence[float]
    heights: Sequence[float]
    color: str
    label: str = ""
    floors: Sequence[float] = ()

    def svg(self, x: Axis, y: Axis) -> str:
        floors = self.floors or [0.0] * len(self.heights)
        bars = zip(self.edges, self.edges[1:], floors, self.heights, strict=False)
        return "".join(
            _draw_rectangle(start, floor, end, floor + height, self.color, x, y)
            for start, end, floor, height in bars
            if height
        )

    def swatch(self) -> str:
        return f'<rect width="24" height="12" class="{self.color}"/>'


@dataclass(frozen=True, slots=True)
class HorizontalBars:
    """Horizontal bars, a row for each whole number of the vertical axis."""

    spans: Sequence[tuple[float, float]]
    color: str
    label: str = ""
    thickness: float = 0.62

    @classmethod
    def by_look(
        cls, ends: Sequence[float], looks: Sequence[tuple[str, str]], thickness: float = 0.62
    ) -> list[HorizontalBars]:
        """Make bars from 0 to these ends, each in its look: a color and a label."""
        rows = list(zip(ends, looks, strict=True))
        return [
            cls([(0.0, end if own == look else 0.0) for end, own in rows], *look, thickness)
            for look in dict.fromkeys(looks)
        ]

    def svg(self, x: Axis, y: Axis) -> str:
        half = self.thickness / 2
        return "".join(
            _draw_rectangle(start, row - half, end, row + half, self.color, x, y)
            for row, (start, end) in enumerate(self.spans)
        )

    def swatch(self) -> str:
        return f'<rect width="24" height="12" class="{self.color}"/>'


@dataclass(frozen=True, slots=True)
class FullLine:
    """A line through the whole plot, from the bottom to the top or from side to side."""

    at: float
    color: str
    label: str = ""
    dashes: str = ""
    width: float = 1.5
    horizontal: bool = False

    def svg(self, x: Axis, y: Axis) -> str:
        upright = [(self.at, y.low), (self.at, y.high)]
        level = [(x.low, self.at), (x.high, self.at)]
        return self._line(level if self.horizontal else upright).svg(x, y)

    def swatch(self) -> str:
        return self._line([]).swatch()

    def _line(self, points: Sequence[Point]) -> Polyline:
        return Polyline(points, self.color, "", self.dashes, self.width)


#: Anything that is drawn. A mark with a label is explained by a line of the legend.
Mark = Polyline | Band | Dots | VerticalBars | HorizontalBars | FullLine


@dataclass(frozen=True, slots=True)
class Chart:
    """Marks on two axes, drawn one over the other; without labels an axis shows nothing."""

    x: Axis
    y: Axis
    marks: Sequence[Mark]
    #: Of the plot, in pixels.
    #: The height of the plot, in pixels.
    height: int = 260
    names_above: bool = False

    @property
    def legend(self) -> list[tuple[str, str]]:
        """The swatches, in boxes of 24 by 12, and their labels."""
        return [(mark.swatch(), mark.label) for mark in self.marks if mark.label]

    @property
    def has_rows(self) -> bool:
        """Whether the vertical axis has a label per row instead of numbers."""
        return any(isinstance(mark, HorizontalBars) for mark in self.marks) and bool(self.y.ticks)

    @property
    def margin(self) -> str:
        """The margin for the lettering, by its name in the style sheet."""
        if self.names_above:
            return "rows"
        longest = max((len(text) for _, text in self.y.labeled), default=0)
        return "bare" if not longest else "numbers" if longest <= _SHORT else "names"

    def plot(self) -> str:
        """Draw the inside of the SVG element; its lettering stands outside of the plot."""
        parts = [_draw_grid_line(text, "x", self.x.share(at)) for at, text in self.x.labeled]
        kind = "row" if self.names_above else "y"
        parts += [_draw_grid_line(text, kind, 1 - self.y.share(at)) for at, text in self.y.labeled]
        parts += [mark.svg(self.x, self.y) for mark in self.marks]
        for index, line in enumerate(self.x.label.split("\n")):
            position = f'x="100%" y="100%" dy="{38 + _LINE * index}" text-anchor="end"'
            parts.append(_draw_title(line, position))
        return "".join([*parts, _draw_title(self.y.label, 'dy="-12"')])


def _choose_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Find at most five round numbers between two, and their text.

    >>> [text for _, text in _choose_ticks(0, 1.05)]
    ['0', '0.25', '0.5', '0.75', '1']
    """
    power = 10.0 ** math.floor(math.log10((high - low) / _MOST_TICKS))
    step = next(
        step
        for step in (factor * power for factor in (1, 2, 2.5, 5, 10, 20))
        if math.floor(high / step) - math.ceil(low / step) < _MOST_TICKS
    )
    multiples = range(math.ceil(low / step), math.floor(high / step) + 1)
    return [(multiple * step, _format_tick(round(multiple * step, 12))) for multiple in multiples]


def _format_tick(amount: float) -> str:
    return f"{amount / 1e6:,g} M" if abs(amount) >= 1e6 else f"{amount:,g}"


def _draw_grid_line(label: str, kind: str, share: float) -> str:
    at, text = f"{100 * share:.6g}%", escape(label)
    if kind == "x":
        return (
            f'<line x1="{at}" x2="{at}" y1="100%" y2="0" class="grid"/>'
            f'<text x="{at}" y="100%" dy="18" text-anchor="middle">{text}</text>'
        )
    if kind == "row":
        return f'<text y="{at}" dy="-13" class="title">{text}</text>'
    return (
        f'<line x1="0" x2="100%" y1="{at}" y2="{at}" class="grid"/>'
        f'<text y="{at}" dx="-8" dy="4" text-anchor="end">{text}</text>'
    )


def _draw_title(text: str, attributes: str) -> str:
    return f'<text {attributes} class="title">{escape(text)}</text>' if text else ""


def _locate_point(x: float, y: float, across: Axis, up: Axis) -> tuple[str, str]:
    return f"{100 * across.share(x):.6g}%", f"{100 - 100 * up.share(y):.6g}%"


def _draw_path(points: Sequence[Point], x: Axis, y: Axis, look: str, end: str = "") -> str:
    """Draw a path of 1,000 by 1,000, stretched over the plot; its lines keep their widths."""
    path = "L".join(f"{1000 * x.share(a):.5g} {1000 - 1000 * y.share(b):.5g}" for a, b in points)
    return (
        '<svg viewBox="0 0 1000 1000" preserveAspectRatio="none" width="100%" height="100%" '
        f'overflow="visible"><path d="M{path}{end}"{look}/></svg>'
    )


def _draw_rectangle(
    start: float, bottom: float, end: float, top: float, color: str, x: Axis, y: Axis
) -> str:
    first, last = sorted((100 * x.share(start), 100 * x.share(end)))
    above, below = sorted((100 - 100 * y.share(bottom), 100 - 100 * y.share(top)))
    return (
        f'<rect x="{first:.6g}%" y="{above:.6g}%" width="{last - first:.6g}%" '
        f'height="{below - above:.6g}%" class="{color}"/>'
    )


def svg_file(
    *charts: tuple[str, Chart],
    alt: str,
    width: int = 720,
    colors: Mapping[str, str] = LIGHT,
) -> str:
    """Write charts with their titles, one below the other; ``alt`` describes them in words.

    A line of a legend has two entries, so that a label has room for some forty characters.
    """
    parts, top = [], 12
    for title, chart in charts:
        if title:
            parts.append(f'<text x="24" y="{top + 11}" class="title name">{escape(title)}</text>')
            top += _LINE
        for index, (swatch, label) in enumerate(chart.legend):
            start, row = 24 + index % 2 * width // 2, top + index // 2 * _LINE
            parts.append(
                f'<svg x="{start}" y="{row}" width="24" height="12" overflow="visible">'
                f"{swatch}</svg>"
                f'<text x="{start + 34}" y="{row + 11}" class="title">{escape(label)}</text>'
            )
        top += -(-len(chart.legend) // 2) * _LINE
        edges = EDGES[chart.margin]
        longest = max((len(text) for _, text in chart.y.labeled), default=0)
        start = max(edges.left, 12 + _LETTER * longest)
        parts.append(
            f'<svg x="{start}" y="{top + edges.above}" width="{width - start - edges.right}" '
            f'height="{chart.height}" overflow="visible">{chart.plot()}</svg>'
        )
        top += edges.above + chart.height + edges.below + _LINE * chart.x.label.count("\n") + 12
    style = f"{chart_style(colors)}\n.name {{ font-weight: 600; }}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" '
        f'height="{top}" role="img" aria-label="{escape(alt)}"><style>{style}</style>'
        f'<rect width="{width}" height="{top}" fill="{colors["paper"]}"/>{"".join(parts)}</svg>\n'
    )
