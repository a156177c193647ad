"""The command line: parse input, show results, no arithmetic.

Exit codes: 0 done, 1 a negative outcome of a check or an action, 2 bad input, 70 an error of ours.
Code 3 is for a proof that holds but does not show that the loss is within the budget.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import click

from expost import __version__
from expost.cli._lazy_group import LazyGroup

__all__ = ["group", "run"]

#: The summaries that ``--help`` prints, by task.
_TASKS = {
    "Start": {
        "demo": "Show the idea in a minute.",
        "design": "Predict the accuracy of each study design and recommend one.",
        "new": "Create a transcript for a subject.",
        "query": "Create a query file.",
    },
    "One subject": {
        "decide": "Check whether a query would be accepted (dry run).",
        "ask": "Ask a query and record the response.",
        "next": "Advance a subject's history to the next time step.",
        "explain": "Explain a transcript in plain language.",
        "plot": "Plot the loss after each response.",
        "compare": "Compare accounting methods on a transcript.",
    },
    "Many subjects": {
        "ledger": "Run a durable study (crash-safe budgets for many subjects).",
        "serve": "Serve a study over HTTP.",
        "forecast": "Forecast how many subjects will accept a query, now and in later rounds.",
        "import": "Make a clean table of answers from an exported survey.",
        "estimate": "Estimate means, shares or distributions from many subjects.",
    },
    "Check": {
        "loss": "Compute the realized privacy loss of one or many subjects.",
        "audit": "Check that every subject's budget was respected at every exchange.",
        "certify": "Write a proof of an upper bound on the realized loss.",
        "verify": "Check a proof of an upper bound on the realized loss.",
        "check-client": "Test whether a client samples as claimed.",
        "reproduce": "Run the experiments of the paper and write a report.",
    },
    "Setup": {
        "doctor": "Check the installation and suggest fixes.",
        "completion": "Print a shell completion script.",
    },
}


@click.group(
    "expost",
    cls=LazyGroup,
    package="expost.cli",
    tasks=_TASKS,
    context_settings={"show_default": True},
)
@click.version_option(__version__, message="expost %(version)s")
def group() -> None:
    """Privacy accounting for local differential privacy, based on the answers actually given."""


class _Patient(io.FileIO):
    """An output whose reader may stop (``| head -1``) without changing the exit code."""

    lost = False

    def write(self, data: Any) -> int:
        if not self.lost:
            try:
                return super().write(data)
            except OSError as error:
                # Buffered output comes here again when the program ends.
                self.lost = True
                if not isinstance(error, BrokenPipeError):
                    raise
        return memoryview(data).nbytes


def run() -> None:
    """Run the command line. Any error is one line on standard error, and an exit code."""
    import warnings

    from expost.errors import ExpostError, InvalidInput

    warnings.simplefilter("ignore", UserWarning)  # commands print them in lines of their own
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
        for entry in error.details:
            print(f"expost: {entry}", file=sys.stderr)
        reason = str(error)
    except ExpostError as refusal:  # a query was refused, or a ledger has stopped
        reason, code = str(refusal), 1
    except click.ClickException as error:
        reason = error.format_message()
    except click.Abort:
        raise KeyboardInterrupt from None  # which it was
    except OSError as error:
        file = f": {error.filename}" if error.filename else ""
        reason = f"cannot write: {error.strerror}{file}"
    except Exception as error:  # whatever it is, a traceback could show what is secret
        reason, code = _internal_error_text(error), 70
    print(f"expost: {' '.join(reason.split())}", file=sys.stderr)
    sys.exit(code)


def _internal_error_text(error: Exception) -> str:
    """Return the message about a bug in this program: its kind and its place.

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
    location = (
        f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "nowhere"
    )
    kind = type(error).__name__
    return (
        f"this is an error of expost and not of yours: {kind} in {location}{hint}. Please report it"
    )
