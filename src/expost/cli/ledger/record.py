"""``expost ledger record``: what devices sent, whatever it is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from expost.cli.ledger.options import Open, asked, ledger, subjects_done
from expost.cli.options import as_json, path
from expost.cli.progress import Line, progress_line
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput, at, printable
from expost.files.regular import LARGEST_TABLE, opened
from expost.files.tables import read_table
from expost.ledger import Ledger, Receipt

__all__ = ["command"]

_TOGETHER = 5_000


@click.command("record")
@ledger
@click.argument("file", type=path, metavar="FILE")
@click.option(
    "--query",
    metavar="QUERY",
    help="FILE is a table of responses to this query that nobody had reserved: subject, response.",
)
@click.option(
    "--key",
    metavar="KEY",
    help="With --query, and needed there: names this round for good, so that nothing is recorded "
    "twice if the command is repeated.",
)
@as_json
def command(open_: Open, file: Path, query: str | None, key: str | None, as_json: bool) -> None:
    """Take in what devices sent.

    FILE has a message on each line. What does not fit its reservation is kept, and its subject is
    closed: something was seen that should not be. Then the exit code is 1.
    """
    if query is None and key is not None:
        raise InvalidInput("goes with --query; a message has its own", "--key")
    if query is not None and key is None:
        raise InvalidInput(
            "goes with --query: it names what is recorded, so that nothing is twice if the "
            "command is repeated",
            "--key",
        )
    with open_() as study, progress_line() as line:
        if query is not None and key is not None:
            outcomes = _responses(study, file, query, key, line)
            shown: list[Receipt] = []
        else:
            shown = list(_received(study, file, line))
            outcomes = Counter(receipt.outcome for receipt in shown)
    if as_json:
        trees = [json.loads(receipt.to_json()) for receipt in shown]
        show_json({**outcomes, **({} if query is not None else {"receipts": trees})})
    else:
        show_lines((name, f"{number:,}") for name, number in (*_named(outcomes), *_why(shown)))
    if outcomes["kept"] or outcomes["closed"]:
        click.get_current_context().exit(1)


def _received(study: Ledger, file: Path, line: Line) -> Iterator[Receipt]:
    with at(str(file), ": "), opened(file, LARGEST_TABLE) as stream:
        messages = [each for each in stream.read().split(b"\n") if each.strip()]
    for start in range(0, len(messages), _TOGETHER):
        yield from study.receive(messages[start : start + _TOGETHER])
        line.count(min(start + _TOGETHER, len(messages)), len(messages), "messages")


def _responses(study: Ledger, file: Path, query: str, key: str, line: Line) -> Counter[str]:
    what = asked(study, query)
    with at(str(file), ": "):
        table = read_table(file, ["subject", "response"])
        for name in ("subject", "response"):
            if name not in table:
                raise InvalidInput(f"has no column {name!r}")
        given = table["response"], table["subject"]
        progress = subjects_done(line)
        accepted = study.record(what, *given, key=key, progress=progress)
    refused = int((~accepted).sum())
    return Counter({"recorded": len(accepted), "closed": refused})


def _named(outcomes: Counter[str]) -> Iterator[tuple[str, int]]:
    for name in ("recorded", "declined", "kept", "closed"):
        if name == "recorded" or outcomes[name]:
            yield name, outcomes[name]


def _why(shown: list[Receipt]) -> Iterator[tuple[str, int]]:
    """Why messages were kept."""
    reasons = Counter(receipt.reason for receipt in shown if receipt.outcome == "kept")
    for reason, number in reasons.most_common():
        yield printable(f"  {reason}"), number
