"""``expost check-client``: does a client do what it claims?"""

from __future__ import annotations

from pathlib import Path

import click

from expost.cli._inputs import read_domain, read_query
from expost.cli._options import file_option, path
from expost.cli._outputs import Result, prints_result
from expost.client_checks import ClientCheck, Contradiction, check_client
from expost.domains import Domain
from expost.errors import at
from expost.files.tables import read_csv
from expost.numbers import read_confidence
from expost.report._formatting import format_amount, value_text

__all__ = ["command"]


@click.command("check-client")
@click.argument("pairs", type=path, metavar="PAIRS")
@file_option("--query", "CLAIM", "What it claims to be (JSON).", required=True)
@file_option("--domain", "DOMAIN", "A domain, or a file that has one (JSON).", required=True)
@click.option(
    "--confidence",
    default="0.95",
    help="Confidence of a refutation, over all comparisons together.",
)
@click.option("--permanent", is_flag=True, help="A subject's response to an input stays the same.")
@prints_result
def command(pairs: Path, query: Path, domain: Path, confidence: str, permanent: bool) -> Result:
    """Test whether a client samples as claimed. Exits with 1 if that is refuted.

    PAIRS is a table of inputs and the client's outputs (CSV).
    """
    level = read_confidence(confidence)
    with at(str(domain), ": "):
        values = read_domain(domain)
    claim = read_query(query, values)
    with at(str(pairs), ": "):
        table = read_csv(pairs, (*values.called("input"), "output", "subject"))
        check = check_client(claim, values, table, confidence=level, permanent=permanent)
    return Result(check.tree(), _lines(check), exit_code=check.refuted)


def _lines(check: ClientCheck) -> list[tuple[str, str]]:
    domain = check.domain
    outcome = "refuted" if check.refuted else "not refuted"
    lines = [
        ("claim", outcome),
        ("reports", f"{check.reports:,} of {check.inputs:,} inputs"),
        ("claimed epsilon", format_amount(check.claimed.nearest)),
    ]
    if check.shown is None:
        lines.append(("shown epsilon", "none"))
    else:
        hits, trials = check.shown.hits, check.shown.trials
        likely, unlikely = (
            value_text(value, domain) for value in (check.shown.likely, check.shown.unlikely)
        )
        lines += [
            ("shown epsilon", f"at least {format_amount(check.shown.epsilon)}"),
            ("  event", check.shown.event),
            ("  likely for", f"{likely}  ({hits[0]:,} of {trials[0]:,})"),
            ("  unlikely for", f"{unlikely}  ({hits[1]:,} of {trials[1]:,})"),
        ]
    if check.changed is not None:
        lines.append(("not permanent", "rows {} and {} differ".format(*check.changed)))
    for contradiction in check.contradictions[:3]:
        lines.append(("contradiction", _contradiction(contradiction, domain)))
    if len(check.contradictions) > 3:
        lines.append(("", "and more (--json)"))
    confidence = f"{float(100 * check.confidence):g} %"
    lines.append(("confidence", f"{confidence}, all {check.intervals:,} intervals together"))
    return lines


def _contradiction(contradiction: Contradiction, domain: Domain) -> str:
    claimed, lower, upper = map(
        format_amount, (float(contradiction.claimed), contradiction.lower, contradiction.upper)
    )
    of = (
        "all inputs"
        if contradiction.input is None
        else f"input {value_text(contradiction.input, domain)}"
    )
    return (
        f"{contradiction.event}, {of}: {contradiction.hits:,} of {contradiction.trials:,}, "
        f"claimed {claimed}, is {lower} to {upper}"
    )
