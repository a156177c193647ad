"""``expost verify``: check a proof of a loss."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import path, transcript_file
from expost.cli._outputs import Result, as_json, show_result, with_progress
from expost.errors import ExpostError, InvalidInput, at
from expost.files.kinds import PROOF, TRANSCRIPT, check_kind
from expost.files.regular import read_text
from expost.loss import Replay
from expost.loss._odometer import peak_text
from expost.loss._replay import replay_with_effort
from expost.proof.verify import NOT_SHOWN, Failed, Verdict, read_file, rounded_up, verify
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["command", "proof_lines"]


@click.command("verify")
@transcript_file
@click.argument("proof", type=path, metavar="PROOF")
@as_json
def command(file: Path, proof: Path, as_json: bool) -> None:
    """Check a proof of an upper bound on the realized loss.

    FILE is a transcript, and PROOF a file that expost certify has written. Exits with 1 if the
    proof fails, or if the budget was not respected at some exchange. Exits with 3 if the proof
    holds but does not show that the loss is within a budget without a delta.
    """
    with at(str(file)):
        document = read_text(file)
    claim = _read_proof(proof)
    try:
        with with_progress(Effort()) as (watched_effort, line):
            verdict = verify(
                document, claim, lambda leaves: line.stage(f"leaves checked: {leaves:,}")
            )
            with at(str(file), ": "):
                transcript = Transcript.from_json(document)
            replay = replay_with_effort(transcript, watched_effort, line.exchanges)
    except Failed as error:
        for name, text, kind in ((file, document, TRANSCRIPT), (proof, claim, PROOF)):
            with at(str(name), ": "):
                check_kind(text, kind)
        if as_json:
            show_result(Result({"verified": False, "failed_at": str(error)}, [], 1), as_json=True)
        raise ExpostError(f"the proof fails at {error}") from None
    code = int(replay.respected is False)  # whatever the loss is at the end
    if verdict.shows_end_within_budget is False:
        code = NOT_SHOWN
    tree = {"verified": True, **verdict.tree(), **replay.course_tree()}
    show_result(Result(tree, proof_lines(verdict, replay), code), as_json=as_json)


def proof_lines(verdict: Verdict, replay: Replay, hint: str = "") -> list[tuple[str, str]]:
    """Return what a proof proves, and whether the budget was respected at every exchange."""
    lines = [("proved", f"the realized loss is at most {rounded_up(verdict.loss)}")]
    if verdict.about_budget:
        lines.append(("budget", verdict.about_budget + hint))
    if replay.filter is not None:
        # No proof about the end shows it, so it is decided again here.
        lines.append(("budget respected", replay.respected_text))
    return [*lines, ("at its peak", peak_text(replay.peak, replay.loss))]


def _read_proof(path: Path) -> str:
    try:
        return read_file(str(path))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None
    except Failed:
        raise InvalidInput("is not UTF-8 text", str(path)) from None
