"""Measure all tests and list the slow ones, which ``make quick`` leaves out.

Tests that share a slow fixture have the marker ``slow`` in their module: the time of a fixture
counts for none of them.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import pytest

LIST = Path(__file__).with_suffix(".txt")
SLOW = 0.25
"""The seconds from which on a test function is slow, over all of its cases."""


class Durations:
    """A pytest plugin that adds up the seconds that each test function takes."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.seconds[report.nodeid.partition("[")[0]] += report.duration


def main() -> int:
    """Run all tests, and write the list if they pass."""
    durations = Durations()
    status = pytest.main(["-q", "-n", "auto"], plugins=[durations])
    if status == pytest.ExitCode.OK:
        slow = sorted(name for name, seconds in durations.seconds.items() if seconds >= SLOW)
        LIST.write_text("".join(f"{name}\n" for name in slow), "utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main())
