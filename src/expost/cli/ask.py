"""``expost ask``: ask a query and record the response."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from expost.cli._inputs import check_name, open_history, read_value
from expost.cli._options import file_option, next_query, search_options, transcript_file
from expost.cli._outputs import Line, Result, as_json, progress_line, show_json, show_result
from expost.cli.decide import read_dry_run
from expost.domains import Domain
from expost.errors import BudgetExceeded, InvalidInput
from expost.report._formatting import response_text
from expost.session._file_session import FileSession
from expost.solver import Effort

__all__ = ["command"]


@click.command("ask")
@transcript_file
@next_query
@file_option(
    "--secret",
    "SECRET",
    "File with the subject's value (JSON), or with its history if attributes change. Default: "
    "prompt for the value.",
)
@search_options()
@as_json
def command(file: Path, query: Path, secret: Path | None, effort: Effort, as_json: bool) -> None:
    """Ask a query and record the response before it is shown.

    FILE is the subject's transcript (JSON), which gets the exchange. Exits with 1 if the query is
    refused.
    """
    transcript, _, next_query_ = read_dry_run(file, query)
    with progress_line() as line:
        session = FileSession(
            file,
            _open_secret(secret, transcript.domain, line),
            effort=replace(effort, progress=line),
            waiting=lambda: line.waits_for(file),
        )
        try:
            response = session.ask(next_query_)
        except BudgetExceeded as refusal:
            if as_json:
                tree = refusal.tree()  # may search, so keep the line of progress
                line.clear()
                show_json(tree)
            raise
    answered = len(session.transcript)
    tree = {"answered": True, "response": response, "exchanges": answered}
    shown = response_text(response, next_query_, transcript.domain)
    show_result(Result(tree, [("response", shown), ("exchanges", str(answered))]), as_json=as_json)


def _open_secret(file: Path | None, domain: Domain, line: Line) -> Any:
    if not domain.changes:
        return read_value(file)
    if file is None:
        raise InvalidInput(
            "the domain has attributes that change; pass a history, made by expost next, with "
            "--secret"
        )
    check_name(file, "secret")
    return open_history(file, line)
