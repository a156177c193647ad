"""``expost loss``: the realized loss of a transcript beside basic composition."""

from __future__ import annotations

import math
from pathlib import Path

from expost.cli.progress import watched
from expost.cli.show import basic_text, kept_text, show_json, show_lines, shown
from expost.loss.realized import basic_loss
from expost.loss.replay import replayed
from expost.solver import Effort
from expost.transcript import load

__all__ = ["run"]


def run(file: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load(file)
    basic = basic_loss(transcript)
    with watched(effort) as (watched_effort, line):
        found = replayed(transcript, watched_effort, line.exchanges)
    loss, guard, odometer = found.loss, found.guard, found.odometer
    share = odometer.log_likelihood.utilization(loss)
    if as_json:
        show_json(
            {
                "loss": loss,
                "basic": basic.nearest,
                "exchanges": len(transcript),
                "utilization": share,
                "budget": None if guard is None else guard.budget.nearest,
                "budget_kept": found.kept,
                "first_refused": found.first_refused,
                "peak": found.peak,
                "content_id": transcript.content_id,
            }
        )
        return
    lines = [
        ("exchanges", str(len(transcript))),
        ("realized loss", shown(loss)),
        ("at its peak", shown(found.peak)),
        ("basic composition", basic_text(basic.nearest, transcript)),
        ("utilization", f"{100 * share.upper:.3g} %" if loss.lower < math.inf else "undefined"),
    ]
    if loss.width > effort.gap:
        narrower = "more nodes (--nodes), or less coarse grids of noise, may narrow it"
        lines.insert(2, ("at least", f"{loss.lower:.6g}; {narrower}"))
    if guard is not None:
        lines += [("budget", guard.limit), ("kept", kept_text(found))]
        lines += [("remaining", shown(guard.remaining(odometer)))]
    show_lines(lines)
