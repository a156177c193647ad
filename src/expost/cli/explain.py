"""``expost explain``: a transcript in plain words."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import (
    as_json,
    file_option,
    page_date,
    search_options,
    transcript_file,
)
from expost.cli._outputs import Line, check_output, modification_date, show_json, with_progress
from expost.errors import InvalidInput, make_printable
from expost.files.kinds import PAGE
from expost.knowledge import confidence_change, load_prior
from expost.loss._replay import replay_with_effort
from expost.report._explanation import Explanation, explain, explanation_sentences
from expost.report._learned_page import learned_page, learned_sentences
from expost.report._transcript_page import transcript_page
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("explain")
@transcript_file
@file_option("--prior", "PRIOR", "How likely each value was before (CSV).")
@click.option("--statement", metavar="TEXT", help="With --prior: a statement, such as 'age >= 60'.")
@file_option("--html", "OUT", "Where to save it as a page; an existing page is replaced.")
@page_date
@search_options()
@as_json
def command(
    file: Path,
    prior: Path | None,
    statement: str | None,
    html: Path | None,
    date: str | None,
    effort: Effort,
    as_json: bool,
) -> None:
    """Explain a transcript in plain language.

    It says what was asked and answered, what that did to the loss, and what the loss means.

    With a prior and a statement: how much the answers change its probability.
    """
    if date is not None and html is None:
        raise InvalidInput("requires --html", "--date")
    if html is not None:
        check_output(html, PAGE, file, prior)
    if prior is not None and statement is not None:
        _show_learned(file, prior, statement, html, date, effort, as_json=as_json)
    elif prior is None and statement is None:
        _show_explanation(file, html, date, effort, as_json=as_json)
    else:
        raise InvalidInput("give --prior PRIOR and --statement TEXT together")


def _show_learned(
    file: Path,
    prior: Path,
    statement: str,
    html: Path | None,
    date: str | None,
    effort: Effort,
    *,
    as_json: bool,
) -> None:
    transcript = load_transcript(file)
    belief = load_prior(prior, transcript.domain)
    with with_progress(effort) as (watched_effort, line):
        replay = replay_with_effort(transcript, watched_effort, line.exchanges)
        change = confidence_change(replay, belief, statement)
    if html is not None:
        content = learned_page(
            change, replay, name=file.name, prior=prior.name, date=date or modification_date(file)
        )
        html.write_text(content, encoding="utf-8")
    if as_json:
        show_json(change.tree())
    else:
        click.echo("\n".join(learned_sentences(change, replay)))
        _say_where(html)


def _show_explanation(
    file: Path, html: Path | None, date: str | None, effort: Effort, *, as_json: bool
) -> None:
    transcript = load_transcript(file)
    with with_progress(effort) as (watched_effort, line):
        explanation = explain(replay_with_effort(transcript, watched_effort, line.exchanges))
        if html is not None:
            _draw(explanation, file, html, date, line)
    if as_json:
        show_json(explanation.tree())
        return
    click.echo("\n".join(map(make_printable, explanation_sentences(explanation))))
    _say_where(html)


def _say_where(html: Path | None) -> None:
    if html is not None:
        click.echo(f"\n{make_printable(f'The page is in {html}.')}")


def _draw(explanation: Explanation, file: Path, html: Path, date: str | None, line: Line) -> None:
    losses = line.losses_along(explanation.replay.odometer)
    content = transcript_page(
        explanation, losses, name=file.name, date=date or modification_date(file)
    )
    html.write_text(content, encoding="utf-8")
