"""``expost ledger ask``: a simulation, with the values of subjects."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.ledger.options import (
    Open,
    find_query,
    ledger,
    round_key,
    round_query,
    subjects_done,
)
from expost.cli.ledger.values import read_values
from expost.cli.options import as_json, path
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines
from expost.files.canonical import plain

__all__ = ["command"]


@click.command("ask")
@ledger
@round_query
@round_key
@click.option(
    "--values",
    type=path,
    required=True,
    metavar="VALUES",
    help="Table of subjects and their values: the columns 'subject', and 'value' or one for each "
    "coordinate. It stays secret: run chmod 600.",
)
@as_json
def command(open_: Open, query: str, key: str, values: Path, as_json: bool) -> None:
    """Simulate subjects: ask them a query and record their responses.

    Register the subjects with --kind simulated first. Responses are recorded before they are shown.
    A refusal costs the subject nothing. If you hold real values and publish about groups, use
    central differential privacy instead. Stop other processes that write to the ledger first.
    """
    with open_() as study, progress_line() as line:
        wanted = find_query(study, query)
        subjects, secret = read_values(values, study.domain)
        replies = study.ask(wanted, secret.rows, subjects, key=key, progress=subjects_done(line))
    columns, refused = replies.columns(), replies.refused
    answered = list(zip(columns["subject"], columns["response"], strict=True))
    if as_json:
        trees = [{"subject": name, "response": response} for name, response in answered]
        show_json(plain({"key": key, "answered": trees, "refused": refused}))
    else:
        counts = [("answered", f"{len(answered):,}"), ("refused", f"{len(refused):,}")]
        show_lines([("key", key), *counts])
