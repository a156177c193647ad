"""``expost ledger ask``: everybody whose value is at hand."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.ledger.options import Open, asked, ledger, round_key, round_query, subjects_done
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
    help="A table of who is asked and their values: the column 'subject', and 'value' or a column "
    "for each coordinate. It stays secret.",
)
@as_json
def command(open_: Open, query: str, key: str, values: Path, as_json: bool) -> None:
    """Ask everybody whose value is at hand, and record it.

    For simulations, or for people who cannot answer by themselves. All is recorded before anything
    is shown. Who is refused has spent nothing. Whoever holds the values of everybody and publishes
    about groups should rather use central differential privacy.
    """
    with open_() as study, progress_line() as line:
        what = asked(study, query)
        subjects, secret = read_values(values, study.domain)
        replies = study.ask(what, secret.rows, subjects, key=key, progress=subjects_done(line))
    columns, refused = replies.columns(), replies.refused
    answered = list(zip(columns["subject"], columns["response"], strict=True))
    if as_json:
        trees = [{"subject": name, "response": response} for name, response in answered]
        show_json(plain({"key": key, "answered": trees, "refused": refused}))
    else:
        counts = [("answered", f"{len(answered):,}"), ("refused", f"{len(refused):,}")]
        show_lines([("key", key), *counts])
