"""``expost certify`` and ``expost verify``: write a proof of a loss, and check one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from expost.cli.progress import watched
from expost.cli.show import kept_text, show_json, show_lines, shown
from expost.errors import InvalidInput, at
from expost.files.regular import check_apart, read_text
from expost.loss.replay import Replay, replayed
from expost.proof.certificate import certificate
from expost.proof.verify import NOT_SHOWN, Failed, Verdict, read_file, rounded_up, verify
from expost.solver import Effort
from expost.transcript import Transcript, load

__all__ = ["certify", "check"]


def certify(file: Path, out: Path, effort: Effort, *, as_json: bool) -> None:
    check_apart(out, file)
    transcript = load(file)
    with watched(effort) as (watched_effort, line):
        proof = certificate(
            transcript,
            gap=effort.gap,
            nodes=effort.most,
            progress=lambda leaves: line.stage(f"leaves: {leaves:,}"),
        )
        way = replayed(transcript, watched_effort, line.exchanges)
    size = proof.save(out)
    if as_json:
        show_json({**_found(proof.verdict, way), "bytes": size})
        return
    show_lines(
        [
            *_lines(proof.verdict, way),
            ("leaves", f"{proof.leaves:,}"),
            ("proof", f"{out}, {size:,} bytes"),
        ]
    )


def check(file: Path, proof: Path, *, as_json: bool) -> None:
    with at(str(file)):
        document = read_text(file)
    try:
        with watched(Effort()) as (watched_effort, line):
            verdict = verify(
                document, _text(proof), lambda leaves: line.stage(f"leaves checked: {leaves:,}")
            )
            with at(str(file), ": "):
                transcript = Transcript.from_json(document)
            way = replayed(transcript, watched_effort, line.exchanges)
    except Failed as error:
        if as_json:
            show_json({"verified": False, "failed_at": str(error)})
        else:
            typer.echo(f"expost: the proof fails at {error}", err=True)
        raise typer.Exit(1) from None
    if as_json:
        show_json({"verified": True, **_found(verdict, way)})
    else:
        show_lines(_lines(verdict, way))
    if verdict.shows_end_within_budget is False:
        raise typer.Exit(NOT_SHOWN)


def _found(verdict: Verdict, way: Replay) -> dict[str, Any]:
    return {
        "loss": float(rounded_up(verdict.loss)),
        "leaves": verdict.leaves,
        "shows_end_within_budget": verdict.shows_end_within_budget,
        "budget_kept": way.kept,
        "first_refused": way.first_refused,
        "peak": way.peak,
    }


def _lines(verdict: Verdict, way: Replay) -> list[tuple[str, str]]:
    lines = [("proved", f"the realized loss is at most {rounded_up(verdict.loss)}")]
    if verdict.about_budget:
        lines.append(("budget", verdict.about_budget))
    if way.guard is not None:
        # No proof of the end says it, so it is decided again here.
        lines.append(("kept", kept_text(way)))
    return [*lines, ("at its peak", shown(way.peak))]


def _text(path: Path) -> str:
    try:
        return read_file(str(path))
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", str(path)) from None
