"""``expost decide``: would the filter of a transcript accept one more query?"""

from __future__ import annotations

from pathlib import Path

from expost.accounting import Odometer, filter_of
from expost.cli.show import show_json, show_lines, shown
from expost.errors import InvalidInput, at, printable
from expost.queries import query_from_json
from expost.reading import parse
from expost.transcript import load, read_text

__all__ = ["run"]


def run(file: Path, query_file: Path, *, as_json: bool) -> None:
    transcript = load(file)
    if transcript.filter is None:
        raise InvalidInput("the transcript names no filter, so there is no budget", str(file))
    with at(str(query_file), ": "):
        query = query_from_json(parse(read_text(query_file)))
        query.on(transcript.domain)
    decision = filter_of(transcript.filter).decide(Odometer(transcript), query)
    if as_json:
        show_json(decision.tree())
        return
    worst = shown(decision.loss_at_worst)
    if decision.worst_response is not None:
        worst += f"  (if the response is {printable(str(decision.worst_response))})"
    show_lines(
        [
            ("decision", "accepted" if decision.accepted else "refused"),
            ("loss now", shown(decision.loss)),
            ("loss at worst", worst),
            ("budget", str(decision.budget)),
            ("remaining", shown(decision.remaining)),
            ("largest epsilon", str(decision.largest_epsilon or "none")),
        ]
    )
