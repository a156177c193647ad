"""``expost decide``: would the filter of a transcript accept one more query?"""

from __future__ import annotations

from pathlib import Path

from expost.accounting import Odometer, filter_of
from expost.cli.progress import watched
from expost.cli.show import show_json, show_lines, shown
from expost.errors import InvalidInput, at, printable
from expost.extrema import Effort
from expost.queries import query_from_json
from expost.reading import parse
from expost.transcript import load, read_text

__all__ = ["run"]


def run(file: Path, query_file: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load(file)
    if transcript.filter is None:
        raise InvalidInput("the transcript names no filter, so there is no budget", str(file))
    with at(str(query_file), ": "):
        query = query_from_json(parse(read_text(query_file)))
        query.on(transcript.domain)
    with watched(effort) as watched_effort:
        odometer = Odometer(transcript, effort=watched_effort)
        decision = filter_of(transcript.filter).decide(odometer, query)
        tree = decision.tree()  # works out everything that is shown
    if as_json:
        show_json(tree)
        return
    outcome = "accepted" if decision.accepted else "refused"
    if decision.undecided:
        outcome += f": not decided within {effort.nodes:,} nodes (--nodes)"
    worst = shown(decision.loss_at_worst)
    if decision.worst_response is not None:
        worst += f"  (if the response is {printable(str(decision.worst_response))})"
    show_lines(
        [
            ("decision", outcome),
            ("loss now", shown(decision.loss)),
            ("loss at worst", worst),
            ("budget", str(decision.budget)),
            ("remaining", shown(decision.remaining)),
            ("largest epsilon", str(decision.largest_epsilon or "none")),
        ]
    )
