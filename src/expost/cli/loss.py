"""``expost loss``: the realized loss of a transcript beside basic composition."""

from __future__ import annotations

from pathlib import Path

from expost.accounting import Odometer, filter_of
from expost.cli.show import show_json, show_lines, shown
from expost.extrema import exact_spread
from expost.loss import basic_loss, share_of
from expost.transcript import load

__all__ = ["run"]


def run(file: Path, *, as_json: bool) -> None:
    transcript = load(file)
    odometer = Odometer(transcript)
    loss, basic = exact_spread(odometer.log_likelihood), basic_loss(transcript)
    share = share_of(loss, basic)
    guard = None if transcript.filter is None else filter_of(transcript.filter)
    within = None if guard is None else guard.exact_loss(odometer) <= guard.budget
    if as_json:
        show_json(
            {
                "loss": loss.enclosure,
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
        ("realized loss", shown(loss.enclosure)),
        ("basic composition", shown(basic.nearest)),
        ("utilization", f"{100 * share.upper:.3g} %"),
    ]
    if guard is not None:
        lines += [("budget", str(guard.budget)), ("remaining", shown(guard.remaining(odometer)))]
    if within is False:
        lines.append(("warning", "this transcript is over its budget"))
    show_lines(lines)
