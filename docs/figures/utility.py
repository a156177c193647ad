"""The map of docs/explanation/when.md: ``PYTHONPATH=. python docs/figures/utility.py``.

The most accurate study design, for yes-or-no questions to 2,000 subjects, by the number of values,
the budget, and what is known in advance. utility.json has the predictions; ``--measured FOLDER``
makes it again from the folder of ``python -m benchmarks.utility``.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from benchmarks.utility import STRATEGIES, Cell

from expost.designs import Arrival
from expost.report._palette import ALLOWED, GREEN, INK, OCHRE, PALE, PAPER

NUMBERS = Path(__file__).with_suffix(".json")
STATIC = Path(__file__).parent.parent / "_static"

SIZES = (1_000, 64, 27, 10, 2)
BUDGETS = {"1/2": "0.5", "1": "1", "2": "2", "4": "4"}
PANELS = {
    "Six questions, all known": (Arrival.UP_FRONT, 6),
    "Six in turn, number known": (Arrival.SEQUENTIAL, 6),
    "Number unknown, after three": (Arrival.OPEN_ENDED, 3),
    "Number unknown, after six": (Arrival.OPEN_ENDED, 6),
    "Number unknown, after twelve": (Arrival.OPEN_ENDED, 12),
}
COLORS = {
    "one sampled question": (PALE, "Q"),
    "full-value report": (OCHRE, "V"),
    "joint report": (GREEN, "J"),
    "saturating queries": (ALLOWED, "S"),
}
"""A color and a letter for each family of designs that is the best one somewhere."""
LEFT_OUT = ("declared plan with a delta, all", "filter, 1/20 of the budget each")
"""A weaker guarantee; and what is far from the best in fewer surveys than the others have."""
SUBSETS, SURVEYS = "full-value report, subset selection", 40
"""On 1,000 values this is only predicted, for so many surveys: they cannot be carried out."""
NEAR = 1.03
"""Within so much the predictions do not tell two study designs apart."""

CELL, ROW = (64, 28), 222


def errors(
    measured: Path, size: int, budget: str, arrival: Arrival, questions: int
) -> dict[str, float]:
    """Predicted errors of the best of each family that can be carried out, over some surveys."""
    squares: dict[str, list[float]] = {}
    for design, strategy in STRATEGIES.items():
        cell = Cell(size, budget, questions, design)
        late = strategy(questions).latest_arrival.rank >= arrival.rank
        if cell.possible and late and design not in LEFT_OUT:
            squares[design] = [predicted for _, predicted in cell.load(measured)]
        elif design == SUBSETS:
            squares[design] = [cell.predicted(cell.survey(seed), seed) for seed in range(SURVEYS)]
    # The first so many surveys are the same for all study designs.
    same = min(len(predicted) for predicted in squares.values() if predicted)
    smallest: dict[str, float] = {}
    for design, predicted in squares.items():
        if predicted:
            family = STRATEGIES[design](questions).family
            error = math.sqrt(float(np.mean(predicted[:same])))
            smallest[family] = min(error, smallest.get(family, math.inf))
    return smallest


def best_designs(measured: Path) -> dict[str, dict[str, list[str]]]:
    """Return the best designs of each cell: letters, and the error in percentage points."""
    panels: dict[str, dict[str, list[str]]] = {}
    for title, (arrival, questions) in PANELS.items():
        rows = panels.setdefault(title, {})
        for size in SIZES:
            rows[str(size)] = []
            for budget in BUDGETS:
                by_family = errors(measured, size, budget, arrival, questions)
                best = min(by_family.values())
                letters = [
                    letter
                    for family, (_, letter) in COLORS.items()
                    if by_family.get(family, math.inf) <= NEAR * best
                ]
                rows[str(size)].append(f"{'/'.join(letters)} {100 * best:.1f}")
    return panels


def cell(x: int, y: int, content: str) -> Iterator[str]:
    letters, number = content.split()
    colors = {letter: color for color, letter in COLORS.values()}
    width = CELL[0] // len(letters.split("/"))
    for place, letter in enumerate(letters.split("/")):
        yield (
            f'<rect x="{x + place * width}" y="{y}" width="{width}" height="{CELL[1]}" '
            f'fill="{colors[letter]}"/>'
        )
    width, height = CELL
    yield f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="{PAPER}"/>'
    ink = f' fill="{PAPER}"' if letters == "J" else ""
    yield (
        f'<text x="{x + CELL[0] // 2}" y="{y + 19}" text-anchor="middle" font-size="13"{ink}>'
        f'{letters} <tspan font-weight="600">{number}</tspan></text>'
    )


def panel(x: int, y: int, title: str, rows: dict[str, list[str]]) -> Iterator[str]:
    yield f'<text x="{x + 50}" y="{y + 14}" font-weight="600">{title}</text>'
    for row, (size, contents) in enumerate(rows.items()):
        top = y + 24 + row * CELL[1]
        yield f'<text x="{x + 44}" y="{top + 19}" text-anchor="end">{int(size):,}</text>'
        for column, content in enumerate(contents):
            yield from cell(x + 50 + column * CELL[0], top, content)
    foot = y + 24 + len(rows) * CELL[1] + 18
    for column, budget in enumerate(BUDGETS.values()):
        middle = x + 50 + column * CELL[0] + CELL[0] // 2
        yield f'<text x="{middle}" y="{foot}" text-anchor="middle">ε = {budget}</text>'


def key(x: int, y: int) -> Iterator[str]:
    for row, (family, (color, letter)) in enumerate(COLORS.items()):
        top = y + 24 + row * 30
        ink = f' fill="{PAPER}"' if letter == "J" else ""
        yield f'<rect x="{x + 20}" y="{top}" width="32" height="22" fill="{color}"/>'
        yield f'<text x="{x + 36}" y="{top + 16}" text-anchor="middle"{ink}>{letter}</text>'
        yield f'<text x="{x + 62}" y="{top + 16}">{family}</text>'
    for line, text in enumerate(
        ("Rows: number of values. Numbers: predicted", "standard error in percentage points.")
    ):
        yield f'<text x="{x + 20}" y="{y + 164 + 18 * line}" font-size="13">{text}</text>'


def drawn(panels: dict[str, dict[str, list[str]]]) -> str:
    """Draw the map as SVG."""
    height = 3 * ROW
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {height}" role="img" '
        'aria-labelledby="title" font-family="system-ui, sans-serif" font-size="14" '
        f'fill="{INK}">',
        '<title id="title">The most accurate design, by number of values and budget</title>',
        f'<rect width="640" height="{height}" rx="10" fill="{PAPER}"/>',
    ]
    lines += key(0, 12)
    for number, (title, rows) in enumerate(panels.items(), 1):
        lines += panel(number % 2 * 320, number // 2 * ROW + 12, title, rows)
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measured", type=Path, help="the folder of benchmarks.utility")
    measured = parser.parse_args().measured
    if measured:
        NUMBERS.write_text(json.dumps(best_designs(measured), indent=1) + "\n", encoding="utf-8")
    panels = json.loads(NUMBERS.read_text(encoding="utf-8"))
    (STATIC / "utility_map.svg").write_text(drawn(panels), encoding="utf-8")


if __name__ == "__main__":
    main()
