"""``expost new``: the first file of a subject, with a domain, a budget, and nothing asked."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._domain_options import Fix, fixed
from expost.cli._options import as_json, path
from expost.cli._outputs import show_json
from expost.errors import InvalidInput, at, make_printable
from expost.files.durable import create
from expost.report._formatting import domain_in_words
from expost.transcript import Transcript

__all__ = ["command"]


@click.command("new")
@click.argument("file", type=path, metavar="FILE")
@fixed
@as_json
def command(file: Path, fix: Fix, as_json: bool) -> None:
    """Write the first transcript of a subject.

    It has a domain and a budget, and nothing was asked so far. What no option says is asked for.
    FILE must not be there yet: domain and budget are fixed before the first response, and no file
    is ever written over.
    """
    if file.exists() or file.is_symlink():
        raise InvalidInput("is there already, and is not written over", str(file))
    told, guard, numbers = fix()
    transcript = Transcript(told, guard)
    with at(str(file), ": "):
        create(file, transcript.to_json())
    if as_json:
        show_json({"file": str(file), "content_id": transcript.content_id})
        return
    click.echo(make_printable(f"The subject's value is {domain_in_words(told)}."))
    if numbers:
        click.echo(numbers)
    click.echo(f"The budget is {guard.limit} ({guard.kind} filter). Nothing was asked so far.")
    click.echo(make_printable(f"The transcript is in {file}."))
