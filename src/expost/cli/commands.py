"""The command line: parse input, show results, no arithmetic.

Exit codes: 0 done, 1 a negative outcome of a check or an action, 2 bad input, 3 a proof that holds
and does not show that the loss is within the budget, 70 an error of ours.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

from expost import __version__
from expost.cli._lazy_group import Lazily

__all__ = ["COMMANDS", "group", "run"]

COMMANDS = {
    "demo": "The idea in a minute: an example of the paper, then what a budget tells.",
    "design": "Predict the accuracy of each study design and recommend one.",
    "forecast": "How many will answer a query now, and each time that it is asked again.",
    "new": "Write the first transcript of a subject.",
    "query": "Write a query as JSON, from options.",
    "loss": "The most that anybody who sees all responses of a subject, or of many, has learned.",
    "audit": "Whether the budget of everybody in a log was respected at every exchange.",
    "decide": "Whether the filter of a transcript would accept one more query.",
    "ask": "Ask one query of the subject of a transcript, and record it.",
    "next": "Go on to the next step of the subject of a transcript.",
    "estimate": "What the answers of many say about a group: means, frequencies, distributions.",
    "explain": "What was asked and answered, what it did to the loss and what it means.",
    "plot": "The loss after each response as a picture.",
    "compare": "What every accounting says about a transcript.",
    "ledger": "Run a durable study: crash-safe budgets for many subjects.",
    "check-client": "Whether a client has the probabilities that it claims.",
    "reproduce": "Run the experiments of the paper, and write a report.",
    "certify": "Write a proof of an upper bound on the realized loss.",
    "verify": "Check a proof of an upper bound on the realized loss.",
    "completion": "Print the script that lets a shell complete commands.",
    "doctor": "What is installed here, what of it does not work, and how to mend it.",
}
"""What ``--help`` says about each, in the order of the list."""


@click.group(
    "expost",
    cls=Lazily,
    package="expost.cli",
    listed=COMMANDS,
    context_settings={"show_default": True},
)
@click.version_option(__version__, message="expost %(version)s")
def group() -> None:
    """Privacy accounting after the fact for local differential privacy."""


class _Patient(io.FileIO):
    """An output whose reader may stop (``| head -1``): the exit code stays what it is."""

    lost = False

    def write(self, data: Any) -> int:
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                # What is still buffered comes here again when the program ends.
                self.lost = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


def run() -> None:
    """Run the command line; whatever goes wrong is one line on standard error, and an exit code."""
    import warnings

    from expost.errors import ExpostError, InvalidInput, LargeBudgetWarning

    warnings.simplefilter("ignore", LargeBudgetWarning)  # commands print it as one line
    out = sys.__stdout__
    if out is not None and out is sys.stdout and not out.isatty():
        patient = io.BufferedWriter(_Patient(out.fileno(), "w", closefd=False))
        sys.stdout = io.TextIOWrapper(patient, encoding=out.encoding)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ε shows a question mark
    code = 2
    try:
        done = group.main(sys.argv[1:] or ["--help"], "expost", standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(done)
    except InvalidInput as error:
        reason = str(error)
    except ExpostError as refusal:  # a query was refused, or a ledger has stopped
        reason, code = str(refusal), 1
    except click.ClickException as error:
        reason = error.format_message()
    except click.Abort:
        raise KeyboardInterrupt from None  # which it was
    except OSError as error:
        which = f": {error.filename}" if error.filename else ""
        reason = f"cannot write: {error.strerror}{which}"
    except Exception as error:  # whatever it is, a traceback could show what is secret
        reason, code = _of_ours(error), 70
    print(f"expost: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(code)


def _of_ours(error: Exception) -> str:
    """The message about a bug in this program: its kind and its place.

    It never includes the error's own message, which may contain anything, or local variables.
    """
    import os
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    if os.environ.get("EXPOST_TRACEBACK"):
        print("".join(traceback.format_list(frames)), end="", file=sys.stderr)
        hint = ""
    else:
        hint = "; EXPOST_TRACEBACK=1 shows where it happened"
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "nowhere"
    kind = type(error).__name__
    return f"this is an error of expost and not of yours: {kind} in {place}{hint}. Please report it"
