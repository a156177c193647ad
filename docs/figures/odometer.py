"""The figure of README and docs/index.md: ``python docs/figures/odometer.py``.

It is the picture of ``expost demo``, narrow enough for a phone.
"""

from __future__ import annotations

from pathlib import Path

from expost.cli.demo import simulate_designs
from expost.report._chart import svg_file
from expost.report._figures import odometer_chart

FIGURE = Path(__file__).parent.parent / "_static" / "odometer.svg"
SEED = 3
"""As by default in ``expost demo``."""
ALT = "The loss of one person after each response."


def drawn() -> str:
    """Draw the figure as SVG."""
    odometer = simulate_designs(SEED)["filter"][0]
    chart = odometer_chart(odometer, odometer.history)
    return svg_file(("", chart), alt=ALT, width=520)


if __name__ == "__main__":
    FIGURE.write_text(drawn(), encoding="utf-8")
