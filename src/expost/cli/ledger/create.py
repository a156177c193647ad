"""``expost ledger create``: a new ledger, with a domain and a budget that never change."""

from __future__ import annotations

from pathlib import Path

import click

from expost.answers import queries_from_json
from expost.cli.fixed import Fix, fixed
from expost.cli.ledger.options import checkpoint_file
from expost.cli.options import as_json, path
from expost.cli.show import show_json
from expost.errors import InvalidInput, at, printable
from expost.files.regular import read_text
from expost.ledger import Ledger
from expost.queries import Query
from expost.queries.words import listed
from expost.report.words import domain_in_words

__all__ = ["command"]


@click.command("create")
@click.argument("place", metavar="LEDGER")
@click.option("--study", default="", metavar="TEXT", help="What people call it.")
@click.option(
    "--queries",
    type=path,
    metavar="QUERIES",
    help="A file of queries (JSON): their names, and the domain if no other option names one.",
)
@fixed
@checkpoint_file
@as_json
def command(
    place: str,
    study: str,
    queries: Path | None,
    fix: Fix,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Make a new ledger: a domain and a budget, which never change.

    LEDGER must not be there yet: no ledger is ever written over. What no option says is asked for.
    """
    named: dict[str, Query] = {}
    own = None
    if queries is not None:
        with at(str(queries), ": "):
            own, named = queries_from_json(read_text(queries))
    domain, guard, numbers = fix(own)
    if own is not None and own != domain:
        raise InvalidInput("has another domain", f"{queries}")
    with Ledger.create(
        place, domain, filter=guard, study=study, queries=named, checkpoint=checkpoint
    ) as ledger:
        policy_id = ledger.policy.content_id
    if as_json:
        show_json({"policy_id": policy_id, "study": study, "queries": list(named)})
        return
    click.echo(printable(f"A subject's value is {domain_in_words(domain)}."))
    if numbers:
        click.echo(numbers)
    click.echo(f"The budget of each is {guard.limit} ({guard.kind} filter).")
    if named:
        click.echo(printable(f"It knows the queries {listed(list(named))}."))
    click.echo("Nobody is registered so far.")
