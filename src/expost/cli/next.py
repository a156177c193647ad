"""``expost next``: advance a subject's history to the next time step."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._inputs import check_name, open_history, read_changes, read_record
from expost.cli._options import file_option, transcript_file
from expost.cli._outputs import Result, prints_result, progress_line
from expost.errors import InvalidInput
from expost.session._file_session import FileSession
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("next")
@transcript_file
@file_option(
    "--secret",
    "HISTORY",
    "History of the subject (.jsonl), which is created if it does not exist.",
    required=True,
)
@file_option(
    "--changes",
    "CHANGES",
    "Changed attributes (JSON), or the first record. Default: prompt for them.",
)
@prints_result
def command(file: Path, secret: Path, changes: Path | None) -> Result:
    """Advance a subject's history to the next time step, with the attributes that changed.

    FILE is the subject's transcript (JSON). The first call starts the history with the record at
    the first step. Call it at every step, whether or not anything changed.
    """
    check_name(secret, "secret", may_create=True)
    if secret.suffix != ".jsonl":  # a line would be added to what is perhaps no history
        raise InvalidInput(
            "expected a history, a file whose name ends in .jsonl; pass the first record, and "
            "later the changes, with --changes",
            "--secret",
        )
    transcript = load_transcript(file)
    with progress_line() as line:
        history = open_history(secret, line)
        if history.begun:
            session = FileSession(file, history, waiting=lambda: line.waits_for(file))
            session.next(read_changes(changes))
            step = session.step
        else:
            history.begin(transcript, read_record(changes))
            step = 1
    return Result({"step": step}, [("step", str(step))])
