"""``expost loss``: the realized loss of a transcript beside basic composition."""

from __future__ import annotations

from pathlib import Path

from expost.accounting.decision import remaining
from expost.cli.show import show_json, show_lines, shown
from expost.loss import basic_loss, exact_realized_loss, realized_loss, utilization
from expost.transcript import load

__all__ = ["run"]


def run(file: Path, *, as_json: bool) -> None:
    transcript = load(file)
    loss = realized_loss(transcript)
    basic = basic_loss(transcript)
    share = utilization(transcript)
    spec = transcript.filter
    within = None
    if spec is not None:
        spent = basic if spec.kind == "basic" else exact_realized_loss(transcript)
        within = spent <= spec.budget
    if as_json:
        show_json(
            {
                "loss": loss,
                "basic": basic.nearest,
                "exchanges": len(transcript),
                "utilization": share,
                "budget": None if spec is None else spec.budget.nearest,
                "within_budget": within,
                "content_id": transcript.content_id,
            }
        )
        return
    lines = [
        ("exchanges", str(len(transcript))),
        ("realized loss", shown(loss)),
        ("basic composition", shown(basic.nearest)),
        ("utilization", f"{100 * share.upper:.3g} %"),
    ]
    if spec is not None:
        left = remaining(spec.budget, basic.enclosure if spec.kind == "basic" else loss)
        lines += [("budget", str(spec.budget)), ("remaining", shown(left))]
    if within is False:
        lines.append(("warning", "this transcript is over its budget"))
    show_lines(lines)
