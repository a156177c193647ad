"""What the page about long studies says of a year of weekly questions."""

from __future__ import annotations

from pathlib import Path

from benchmarks.simulated_year import outcomes

PAGE = Path(__file__).parents[2] / "docs/how-to/long_studies.md"


def test_the_table_of_a_year_is_what_the_benchmark_measures() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    lines = [row.strip("| ").split(" | ") for row in rows]
    shown = [line for line in lines if line[0].startswith(("four ", "two ", "one at"))]
    assert shown == [[outcome.design.name, *outcome.figures] for outcome in outcomes()]
