"""``expost check-client``: test whether a client samples as claimed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from expost._format import format_confidence
from expost.cli._inputs import read_domain, read_query
from expost.cli._options import file_option, flag_option, path
from expost.cli._outputs import Result, prints_result
from expost.client_checks import ClientCheck, Contradiction, check_client
from expost.domains import Domain
from expost.errors import at
from expost.files.tables import read_csv, table_errors
from expost.numbers import read_confidence
from expost.report._formatting import format_amount, value_text

__all__ = ["command"]


@click.command("check-client")
@click.argument("pairs", type=path, metavar="PAIRS")
@file_option("--query", "CLAIM", "Query that the client claims to answer (JSON).", required=True)
@file_option(
    "--domain", "DOMAIN", "File with the domain (JSON), such as a transcript.", required=True
)
@click.option(
    "--confidence",
    metavar="P",
    default="0.95",
    help="Confidence of a refutation, over all comparisons together.",
)
@flag_option(
    "--permanent", "The client memoizes: it repeats its response if a subject repeats an input."
)
@prints_result
def command(pairs: Path, query: Path, domain: Path, confidence: str, permanent: bool) -> Result:
    """Test whether a client samples as claimed. Exits with 1 if the test refutes it.

    PAIRS is a table of inputs and the client's outputs (CSV).
    """
    level = read_confidence(confidence)
    with at(str(domain), ": "):
        inputs = read_domain(domain)
    claim = read_query(query, inputs)
    with table_errors(pairs):
        table = read_csv(pairs, (*inputs.called("input"), "output", "subject"))
        check = check_client(claim, inputs, table, confidence=level, permanent=permanent)
    return Result(check.tree(), _describe_check(check), exit_code=check.refuted)


def _describe_check(check: ClientCheck) -> Iterator[tuple[str, str]]:
    domain, shown = check.domain, check.shown
    yield "claim", "refuted" if check.refuted else "not refuted"
    yield "reports", f"{check.reports:,} of {check.inputs:,} inputs"
    yield "claimed epsilon", format_amount(check.claimed.nearest)
    if shown is None:
        yield "shown epsilon", "none"
    else:
        yield "shown epsilon", f"at least {format_amount(shown.epsilon)}"
        yield "  event", shown.event
        values = (("likely", shown.likely), ("unlikely", shown.unlikely))
        for (name, value), hits, trials in zip(values, shown.hits, shown.trials, strict=True):
            yield f"  {name} for", f"{value_text(value, domain)}  ({hits:,} of {trials:,})"
    if check.changed is not None:
        yield "not permanent", "rows {} and {} differ".format(*check.changed)
    for contradiction in check.contradictions[:3]:
        yield "contradiction", _describe_contradiction(contradiction, domain)
    if len(check.contradictions) > 3:
        yield "", "and more (--json)"
    confidence = format_confidence(float(check.confidence))
    yield "confidence", f"{confidence}, all {check.intervals:,} intervals together"


def _describe_contradiction(contradiction: Contradiction, domain: Domain) -> str:
    claimed, lower, upper = map(
        format_amount, (float(contradiction.claimed), contradiction.lower, contradiction.upper)
    )
    inputs = "all inputs"
    if contradiction.input is not None:
        inputs = f"input {value_text(contradiction.input, domain)}"
    return (
        f"{contradiction.event}, {inputs}: {contradiction.hits:,} of {contradiction.trials:,}, "
        f"claimed {claimed}, is {lower} to {upper}"
    )
