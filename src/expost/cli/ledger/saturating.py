"""``expost ledger saturating``: a round of saturating queries, one made for each subject."""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._options import file_option, value_option
from expost.cli._outputs import Result, prints_result, progress_line
from expost.cli.ledger._options import Open, SubjectOptions, ledger, round_key, some_subjects
from expost.cli.ledger.ask import VALUES_HELP, describe_replies, read_values
from expost.cli.ledger.reserve import describe_outcomes
from expost.errors import InvalidInput
from expost.ledger import Ledger

__all__ = ["command"]


@click.command("saturating")
@ledger
@value_option("--question", "STATEMENT", "Statement, or the name of an attribute.", required=True)
@value_option("--cap", "LOSS", "Loss after every response, in nats.", required=True)
@value_option(
    "--seed",
    "HEX",
    "Seed of the public order of the answers, if there are more than two (hexadecimal).",
)
@round_key
@some_subjects
@file_option("--values", "VALUES", f"{VALUES_HELP} Simulate these subjects.")
@prints_result
def command(
    open_: Open,
    question: str,
    cap: str,
    seed: str | None,
    key: str,
    options: SubjectOptions,
    values: Path | None,
) -> Result:
    """Reserve or ask a saturating query, made for each subject.

    The query of a subject depends on its earlier answers. After every response, the subject's loss
    is at the cap. Subjects whose loss has already reached the cap are not asked. Without --values,
    reserve for devices: those of --subject and --subjects, or all. With --values, simulate the
    subjects.
    """
    with open_() as study, progress_line() as line:
        progress = line.counts("subjects")
        subjects = options.find(study)
        if values is None:
            subjects = _all_with_devices(study) if subjects is None else subjects
        elif subjects is None:
            subjects, secret = read_values(values, study.domain)
        else:
            raise InvalidInput("requires --values without --subject and --subjects", "--values")
        names = study.saturating(question, cap=cap, seeds=seed, subjects=subjects, key=key)
        if values is None:
            outcomes = study.reserve(names, subjects, key=key, progress=progress)
            return describe_outcomes(key, outcomes)
        replies = study.ask(names, secret.rows, subjects, key=key, progress=progress)
    return describe_replies(key, replies)


def _all_with_devices(study: Ledger) -> list[str | int]:
    status = study.status()
    pairs = zip(status.subjects, status.kinds, strict=True)
    return [subject for subject, kind in pairs if kind == "device"]
