"""``expost certify``: write a proof of a loss."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import out_option, search_options, transcript_file
from expost.cli._outputs import Result, check_output, prints_result, with_progress
from expost.cli.verify import proof_lines
from expost.files.kinds import PROOF
from expost.loss import Replay
from expost.loss._replay import replay_with_effort
from expost.proof._certificates import Certificate, certify
from expost.solver import NODES, Effort
from expost.transcript import load_transcript

__all__ = ["command"]

#: How many times the limit of nodes to suggest, after a proof that is too loose.
_RETRY_FACTOR = 10


@click.command("certify")
@transcript_file
@out_option("PROOF", "File for the proof (JSON). An existing proof is replaced.", required=True)
@search_options(threads=False)
@prints_result
def command(file: Path, out: Path, effort: Effort) -> Result:
    """Write a proof of an upper bound on the realized loss, for anyone to check.

    FILE is a transcript (JSON).
    """
    check_output(out, PROOF, file)
    transcript = load_transcript(file)
    with with_progress(effort) as (watched_effort, line):
        # Not the watched effort: its limit of work would give another proof than Python does.
        proof = certify(transcript, effort, lambda leaves: line.stage(f"leaves: {leaves:,}"))
        replay = replay_with_effort(transcript, watched_effort.with_share(0.5), line.exchanges)
    size = proof.save(out)
    return Result(
        {**proof.tree(), **replay.course_tree(), "bytes": size},
        [
            *proof_lines(proof.verdict, replay, _suggest_retry(proof, replay, effort)),
            ("leaves", f"{proof.leaves:,}"),
            ("proof", f"{out}, {size:,} bytes"),
        ],
    )


def _suggest_retry(proof: Certificate, replay: Replay, effort: Effort) -> str:
    """Suggest a larger limit of nodes, if a tighter proof might show a loss within the budget."""
    if proof.verdict.shows_end_within_budget is not False:  # shown, or there is no budget
        return ""
    if replay.filter is None or not replay.odometer.searched:
        return ""
    if replay.loss.lower > replay.filter.budget.enclosure.upper:
        return ""
    nodes = NODES if effort.nodes is None else _RETRY_FACTOR * effort.nodes
    return f"; --nodes {nodes} may"
