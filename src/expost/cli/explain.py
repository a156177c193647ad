"""``expost explain``: a transcript in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from expost.cli.options import as_json, path, searching, transcript_file
from expost.cli.progress import watched
from expost.cli.show import show_json
from expost.domains import Domain, Value
from expost.errors import InvalidInput, printable
from expost.files.regular import check_apart
from expost.knowledge.learned import learned
from expost.knowledge.priors import load_prior
from expost.loss.extremes import Apart
from expost.loss.replay import replayed
from expost.report.explanation import Explanation, Told, explain
from expost.report.learned_page import learned_page, learned_sentences
from expost.report.words import basic_text, response_text, shown, value_text
from expost.solver import Effort
from expost.transcript import Transcript, load

__all__ = ["command"]

_CHANGES = {"up": "up", "down": "down", "same": "as before"}


@click.command("explain")
@transcript_file
@click.option("--prior", type=path, metavar="PRIOR", help="What somebody held likely before (CSV).")
@click.option("--statement", metavar="TEXT", help="With --prior: what it is about, as 'age >= 60'.")
@click.option("--html", type=path, metavar="OUT", help="With --prior: where to draw it as a page.")
@searching()
@as_json
def command(
    file: Path,
    prior: Path | None,
    statement: str | None,
    html: Path | None,
    effort: Effort,
    as_json: bool,
) -> None:
    """What was asked and answered, what it did to the loss and what it means, in plain words.

    With a prior and a statement: how sure of it the answers make somebody.
    """
    if prior is not None and statement is not None:
        _show_learned(file, prior, statement, html, effort, as_json=as_json)
    elif prior is None and statement is None and html is None:
        _show_explanation(file, effort, as_json=as_json)
    else:
        raise InvalidInput("give --prior PRIOR and --statement TEXT together")


def _show_learned(
    file: Path, prior: Path, statement: str, html: Path | None, effort: Effort, *, as_json: bool
) -> None:
    if html is not None:
        check_apart(html, file, prior)
    transcript = load(file)
    belief = load_prior(prior, transcript.domain)
    with watched(effort) as (watched_effort, line):
        found = learned(replayed(transcript, watched_effort, line.exchanges), belief, statement)
    if html is not None:
        html.write_text(learned_page(found), encoding="utf-8")
    if as_json:
        show_json(found.tree())
    else:
        click.echo("\n".join(learned_sentences(found)))


def _show_explanation(file: Path, effort: Effort, *, as_json: bool) -> None:
    transcript = load(file)
    with watched(effort) as (watched_effort, line):
        found = explain(replayed(transcript, watched_effort, line.exchanges))
    if as_json:
        show_json(found.tree())
        return
    click.echo("\n".join(map(printable, _sentences(found, transcript))))


def _sentences(found: Explanation, transcript: Transcript) -> Iterator[str]:
    n, domain = found.exchanges, transcript.domain
    yield f"The subject's value is {found.domain}."
    if not n:
        yield "Nothing was asked so far."
    else:
        yield f"{n:,} quer{'ies were' if n > 1 else 'y was'} answered:"
        yield ""
        yield from _table(found, domain)
        yield ""
        yield (
            f"Somebody who sees all of these responses has learned at most {shown(found.loss)}; "
            f"basic composition says {basic_text(found.basic, transcript)}."
        )
        peak = shown(found.replay.peak)
        if peak != shown(found.loss):
            yield f"Somebody who saw only the first ones has learned at most {peak}, the peak."
    yield from _budget(found)
    if n:
        yield from _apart(found, domain)


def _table(found: Explanation, domain: Domain) -> Iterator[str]:
    """A row per exchange, in columns, with a gap where some are left out."""
    rows = [("", "asked", "response", "loss", "")]
    rows += [_row(step, domain) for step in found.steps]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for index, row in enumerate(rows):
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
        if found.left_out and index == len(found.steps) // 2:
            yield f"{'…':<{widths[0]}}  {found.left_out:,} more"


def _row(step: Told, domain: Domain) -> tuple[str, str, str, str, str]:
    response = response_text(step.exchange.response, step.exchange.query, domain)
    return f"{step.number}.", step.asked, response, shown(step.loss), _CHANGES[step.change]


def _budget(found: Explanation) -> Iterator[str]:
    if found.guard is None or found.used is None:
        yield "The transcript names no filter, so there is no budget."
        return
    budget = f"The budget of {found.guard.limit} ({found.guard.kind} filter)"
    replay, used = found.replay, shown(found.held)
    if not found.exchanges:
        yield f"{budget} is untouched."
    elif replay.first_refused is not None:
        yield f"{budget} was not kept: the filter refuses exchange {replay.first_refused:,}."
        yield f"At the end {used} is held against it."
    elif replay.kept is False:
        yield f"{budget} was not kept: on the way the loss was above it."
        yield f"At the end {used} is held against it."
    elif replay.kept:
        share = f"{100 * found.used.upper:.3g} %"
        yield f"{budget} was kept at every exchange; now {used} of it is used: {share}."
    else:
        yield f"{budget}: whether it was kept at every exchange was not decided; more nodes"
        yield f"may tell (--nodes). At the end {used} is held against it."


def _apart(found: Explanation, domain: Domain) -> Iterator[str]:
    apart = found.apart
    if apart is None:
        possible = found.loss.lower < math.inf
        yield (
            "Nothing was found that tells two values apart."
            if possible
            else "No value can have given all of these responses."
        )
        return
    above = _value(apart.likeliest, domain, apart.others and apart.others[0])
    below = _value(apart.unlikeliest, domain, apart.others and apart.others[1])
    if apart.difference == math.inf:
        yield f"Most apart now: the responses are likeliest for {above}, impossible for {below}."
    elif apart.others is None:
        yield f"Far apart now, for example: the responses are {_times(apart)} as likely at {above}"
        yield f"as at {below}."
    else:
        yield (
            f"Most apart now: the responses are {_times(apart)} as likely for {above} "
            f"as for {below}."
        )


def _value(value: Value, domain: Domain, others: int | None) -> str:
    text = value_text(value, domain)
    return f"{text} (and {others:,} more)" if others else text


def _times(apart: Apart) -> str:
    if apart.difference > 700:
        return f"e^{apart.difference:.6g} times"
    return f"{math.exp(apart.difference):.4g} times"
