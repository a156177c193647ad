"""``expost loss``: the realized loss of a transcript beside basic composition."""

from __future__ import annotations

from pathlib import Path

from expost.accounting import Odometer, filter_of
from expost.cli.progress import watched
from expost.cli.show import basic_text, show_json, show_lines, shown
from expost.extrema import Effort
from expost.likelihood import LogLikelihood
from expost.loss import basic_loss, share_between, share_of
from expost.transcript import load

__all__ = ["run"]


def run(file: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load(file)
    basic = basic_loss(transcript)
    guard = None if transcript.filter is None else filter_of(transcript.filter)
    with watched(effort) as watched_effort:
        odometer = Odometer(transcript, effort=watched_effort)
        if isinstance(odometer.log_likelihood, LogLikelihood):
            exact = odometer.exact_loss
            loss, share = exact.enclosure, share_of(exact, basic)
        else:
            loss, share = odometer.loss, share_between(odometer.loss, basic.enclosure)
        within = None if guard is None else guard.holds(odometer)
    if as_json:
        show_json(
            {
                "loss": loss,
                "basic": basic.nearest,
                "exchanges": len(transcript),
                "utilization": share,
                "budget": None if guard is None else guard.budget.nearest,
                "within_budget": within,
                "content_id": transcript.content_id,
            }
        )
        return
    lines = [
        ("exchanges", str(len(transcript))),
        ("realized loss", shown(loss)),
        ("basic composition", basic_text(basic.nearest, transcript)),
        ("utilization", f"{100 * share.upper:.3g} %"),
    ]
    if loss.width > effort.gap:
        narrower = "more nodes (--nodes), or less coarse grids of noise, may narrow it"
        lines.insert(2, ("at least", f"{loss.lower:.6g}; {narrower}"))
    if guard is not None:
        lines += [("budget", guard.limit), ("remaining", shown(guard.remaining(odometer)))]
    if within is False:
        lines.append(("warning", "this transcript is over its budget"))
    show_lines(lines)
