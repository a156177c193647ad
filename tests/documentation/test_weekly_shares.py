"""What the page about values that change says of weekly shares."""

from __future__ import annotations

from pathlib import Path

from benchmarks.weekly import outcomes

PAGE = Path(__file__).parents[2] / "docs/how-to/changing.md"


def test_the_table_of_weekly_shares_is_what_the_benchmark_measures() -> None:
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text("utf-8").splitlines()]
    shown = [line for line in lines if line[0].startswith(("one random week", "every week,"))]
    assert shown == [[outcome.way, *outcome.figures] for outcome in outcomes()]
