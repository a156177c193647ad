"""The figure of docs/how-to/saturating.md: ``python docs/figures/saturating.py``.

Likelihoods of ten values after two responses, the second one to an ordinary or a saturating query.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

import expost as xp
from expost.report._palette import BASIC, FAINT, INK, PAPER, REALIZED

FIGURE = Path(__file__).parent.parent / "_static" / "saturating.svg"

VALUES = range(10)
NAT, BAR, WIDTH = 36, 15, 212
"""Pixels: a nat, a bar, and a panel."""


def panel(x: int, y: int, title: str, odometer: xp.Odometer) -> Iterator[str]:
    """Yield a bar for each value: the log-likelihood above that of the least likely value."""
    belief = xp.knowledge.Belief.uniform(odometer.domain).updated(odometer.transcript)
    logs = [log(share) for share in belief.probabilities.tolist()]
    yield f'<text x="{x}" y="{y}">{title}</text>'
    yield (
        f'<text x="{x + 10 * BAR + 30}" y="{y}" text-anchor="end" font-weight="600">'
        f"loss {odometer.loss.upper:.3g}</text>"
    )
    foot = y + 24 + 2 * NAT
    for number, value_log in enumerate(logs):
        height = round(NAT * (value_log - min(logs)))
        left = x + number * (BAR + 3)
        yield (
            f'<rect x="{left}" y="{foot - height - 2}" width="{BAR}" height="{height + 2}" '
            f'fill="{REALIZED}"/>'
        )
        yield (
            f'<text x="{left + BAR // 2}" y="{foot + 16}" text-anchor="middle" '
            f'font-size="12.5" fill="{FAINT}">{number}</text>'
        )
    yield f'<path d="M{x - 4} {foot}H{x + 182}" stroke="{FAINT}"/>'
    cap = foot - 2 * NAT - 1
    yield f'<path d="M{x - 4} {cap}H{x + 182}" stroke="{BASIC}" stroke-dasharray="6 4"/>'


def drawn() -> str:
    """Draw the figure as SVG."""
    start = xp.Odometer(xp.Transcript(xp.FiniteSet(VALUES)))
    before = start.add(xp.saturating(start, "value >= 7", cap=1), 1)
    ordinary = xp.perturbation([float(value < 4) for value in VALUES], range=(0, 1), epsilon=1)
    saturating = xp.saturating(before, "value < 4", cap=2)
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 500" role="img" '
        'aria-labelledby="title" font-family="system-ui, sans-serif" font-size="14" '
        f'fill="{INK}">',
        '<title id="title">Likelihoods of ten values before and after an ordinary and a '
        "saturating query</title>",
        f'<rect width="640" height="500" rx="10" fill="{PAPER}"/>',
        '<text x="20" y="32" font-weight="600">Before: “value ≥ 7?” was answered yes</text>',
        *panel(20, 56, "first response", before),
    ]
    for row, text in enumerate(
        (
            "A bar is the logarithm of how likely a value makes the",
            "responses, above that of the least likely value.",
            "The tallest bar is the loss. The dashed line is the cap.",
        )
    ):
        lines.append(f'<text x="{20 + WIDTH}" y="{90 + 22 * row}" fill="{FAINT}">{text}</text>')
    for top, query, title in (
        (
            200,
            ordinary,
            "Ordinary query “value &lt; 4?” with ε = 1: the loss depends on the response",
        ),
        (
            362,
            saturating,
            "Saturating query “value &lt; 4?” with cap 2: every response reaches the cap",
        ),
    ):
        lines.append(f'<text x="20" y="{top}" font-weight="600">{title}</text>')
        for column, response in enumerate((0, 1, 2)[: 2 if query is ordinary else 3]):
            after = before.add(query, response)
            lines += panel(20 + column * WIDTH, top + 24, f"response {response}", after)
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    FIGURE.write_text(drawn(), encoding="utf-8")
