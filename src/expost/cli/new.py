"""``expost new``: create a transcript for a subject."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._domain_options import DomainOptions, domain_options
from expost.cli._options import path
from expost.cli._outputs import Result, prints_result
from expost.errors import InvalidInput, at
from expost.files.durable import create
from expost.report._formatting import domain_in_words, filter_name
from expost.transcript import Transcript

__all__ = ["command"]


@click.command("new")
@click.argument("file", type=path, metavar="FILE")
@domain_options
@prints_result
def command(file: Path, domain_options: DomainOptions) -> Result:
    """Create a transcript for a subject.

    FILE gets a domain and a budget, and no exchanges. The command prompts for anything you don't
    pass as an option. FILE must not exist, because domain and budget are fixed before the first
    response. No file is ever overwritten.
    """
    if file.exists() or file.is_symlink():
        raise InvalidInput("already exists; not overwritten", str(file))
    domain, filter_, number_note = domain_options.read()
    transcript = Transcript(domain, filter_)
    with at(str(file), ": "):
        create(file, transcript.to_json())
    lines = [
        f"The subject's value is {domain_in_words(domain)}.",
        number_note,
        f"The budget is {filter_.limit} ({filter_name(filter_)}). Nothing has been asked yet.",
        f"The transcript is in {file}.",
    ]
    return Result({"file": str(file), "content_id": transcript.content_id}, filter(None, lines))
