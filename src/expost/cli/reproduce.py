"""``expost reproduce``: the experiments of the paper, with a report."""

from __future__ import annotations

import os
import time
from pathlib import Path

import typer

from expost.cli.progress import Line, progress_line
from expost.cli.show import show_json
from expost.errors import InvalidInput
from expost.reproduce import reproduce
from expost.reproduce.runner import PARTS, Plan

__all__ = ["run"]


def run(
    part: str,
    out: Path,
    *,
    runs: int | None,
    seed: int,
    jobs: int | None,
    quick: bool,
    as_json: bool,
) -> None:
    known = (*PARTS, "all")
    if part not in known:
        raise InvalidInput(f"must be one of {', '.join(known)}", "experiment")
    for name, number, least in (("runs", runs, 1), ("seed", seed, 0), ("jobs", jobs, 1)):
        if number is not None and number < least:
            raise InvalidInput(f"must be at least {least}", name)
    plan = Plan.of(part, runs=runs, seed=seed, quick=quick)
    with progress_line() as line:
        try:
            tree = reproduce(plan, out, jobs or os.cpu_count() or 1, _Shown(line))
        except KeyboardInterrupt:
            typer.echo("interrupted; the same command goes on from here", err=True)
            raise
    if as_json:
        show_json(tree)
    else:
        typer.echo(f"The report is in {out / 'report.html'}, its numbers in results.json.")


class _Shown:
    """Progress on a line, with an estimate of the time that is left."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._start = time.monotonic()
        self.stage = line.stage

    def runs(self, done: int, total: int, share: float) -> None:
        left = (time.monotonic() - self._start) * (1 / share - 1)
        self._line.count(done, total, "runs", left)
