"""``expost ledger reserve``: the next exchange of subjects, for their devices to answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from expost.cli.ledger.options import (
    Open,
    asked,
    ledger,
    named_or_all,
    round_key,
    round_query,
    some_subjects,
    subjects_done,
)
from expost.cli.options import as_json, path
from expost.cli.outputs import check_output
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines
from expost.files.durable import save
from expost.files.kinds import RESERVATIONS

__all__ = ["command"]


@click.command("reserve")
@ledger
@round_query
@round_key
@some_subjects
@click.option(
    "--out",
    "-o",
    type=path,
    metavar="FILE",
    help="Where to write what is sent to the devices, a line for each; by default it is printed.",
)
@as_json
def command(
    open_: Open,
    query: str,
    key: str,
    subjects: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> None:
    """Reserve the next exchange of subjects for their devices.

    Each device decides, draws and sends by itself; the ledger never sees a value. A subject is
    asked nothing else until its device has answered. The same key again gives the same
    reservations.
    """
    if out is not None:
        check_output(out, RESERVATIONS)
    with open_() as study, progress_line() as line:
        whom, what = named_or_all(study, subjects), asked(study, query)
        found = study.reserve(what, whom, key=key, progress=subjects_done(line))
    reserved = [each for each in found if each is not None]
    refused = [name for name, each in zip(whom, found, strict=True) if each is None]
    text = "".join(f"{each.to_json()}\n" for each in reserved)
    if out is not None:
        save(out, lambda: text)
    if as_json:
        trees = [json.loads(each.to_json()) for each in reserved]
        show_json({"key": key, "reserved": trees, "refused": refused})
    elif out is None:
        click.echo(text, nl=False)
    else:
        show_lines(
            [("key", key), ("reserved", f"{len(reserved):,}"), ("refused", f"{len(refused):,}")]
        )
