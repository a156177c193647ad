"""``expost certify``: write a proof of a loss."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli.options import as_json, path, searching, transcript_file
from expost.cli.progress import watched
from expost.cli.show import show_json, show_lines
from expost.cli.verify import proved
from expost.files.regular import check_apart
from expost.loss.replay import replayed
from expost.proof.certificates import certified
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]

_PROOF = 0.7
"""What the proof may take of all the work; the rest is for what happened on the way."""


@click.command("certify")
@transcript_file
@click.option("--out", "-o", type=path, required=True, metavar="PROOF", help="Where to write it.")
@searching(threads=False)
@as_json
def command(file: Path, out: Path, effort: Effort, as_json: bool) -> None:
    """Write a proof of an upper bound on the realized loss, for anybody to check."""
    check_apart(out, file)
    transcript = load_transcript(file)
    with watched(effort) as (watched_effort, line):
        proof = certified(
            transcript,
            watched_effort.part(_PROOF),
            lambda leaves: line.stage(f"leaves: {leaves:,}"),
        )
        way = replayed(transcript, watched_effort, line.exchanges)
    size = proof.save(out)
    if as_json:
        show_json({**proof.tree(), **way.course(), "bytes": size})
        return
    show_lines(
        [
            *proved(proof.verdict, way),
            ("leaves", f"{proof.leaves:,}"),
            ("proof", f"{out}, {size:,} bytes"),
        ]
    )
