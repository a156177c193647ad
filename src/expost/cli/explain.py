"""``expost explain``: explain a transcript in plain language."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import (
    file_option,
    page_date,
    search_options,
    transcript_file,
    value_option,
)
from expost.cli._outputs import (
    Result,
    check_output,
    modification_date,
    prints_result,
    with_progress,
)
from expost.errors import InvalidInput
from expost.files.durable import save
from expost.files.kinds import PAGE
from expost.knowledge import confidence_change, load_prior
from expost.loss._replay import replay_with_effort
from expost.report._explanation import explain, explanation_sentences
from expost.report._learned_page import learned_page, learned_sentences
from expost.report._transcript_page import transcript_page
from expost.solver import Effort
from expost.transcript import load_transcript

__all__ = ["command"]


@click.command("explain")
@transcript_file
@file_option("--prior", "PRIOR", "Probabilities of the values before the answers (CSV).")
@value_option(
    "--statement", "STATEMENT", "Statement about the value, such as 'age >= 60', with --prior."
)
@file_option("--html", "OUT", "File for a page (.html). An existing page is replaced.")
@page_date
@search_options()
@prints_result
def command(
    file: Path,
    prior: Path | None,
    statement: str | None,
    html: Path | None,
    date: str | None,
    effort: Effort,
) -> Result:
    """Explain a transcript in plain language.

    FILE is a transcript (JSON). Print its questions and answers, what they did to the loss, and
    what the loss means. With a prior and a statement, also print how much the answers change the
    probability of the statement.
    """
    if date is not None and html is None:
        raise InvalidInput("requires --html", "--date")
    check_output(html, PAGE, file, prior)
    if (prior is None) != (statement is None):
        raise InvalidInput("give --prior PRIOR and --statement STATEMENT together")
    transcript = load_transcript(file)
    belief = None if prior is None else load_prior(prior, transcript.domain)
    date = date or modification_date(file)
    with with_progress(effort) as (watched_effort, line):
        replay = replay_with_effort(transcript, watched_effort, line.exchanges)
        if belief is not None and prior is not None and statement is not None:
            change = confidence_change(replay, belief, statement)
            content = learned_page(change, replay, name=file.name, prior=prior.name, date=date)
            tree, sentences = change.tree(), learned_sentences(change, replay)
        else:
            explanation = explain(replay)
            tree, sentences = explanation.tree(), explanation_sentences(explanation)
            if html is not None:
                losses = line.losses_along(replay.odometer)
                content = transcript_page(explanation, losses, name=file.name, date=date)
    lines = [*sentences]
    if html is not None:
        save(html, lambda: content)
        lines += ["", f"The page is in {html}."]
    return Result(tree, lines)
