"""``expost ledger create``: a new ledger, with a domain and a budget that never change."""

from __future__ import annotations

from pathlib import Path

import click

from expost._format import format_list
from expost.answers import queries_from_json
from expost.cli._domain_options import DomainOptions, domain_options
from expost.cli._options import file_option, value_option
from expost.cli._outputs import Result, prints_result
from expost.cli.ledger._options import checkpoint_file, ledger_location
from expost.errors import InvalidInput, at
from expost.files.durable import create
from expost.files.regular import read_text
from expost.ledger import Ledger
from expost.queries import Query
from expost.report._formatting import domain_in_words, filter_name

__all__ = ["command"]


@click.command("create")
@ledger_location
@value_option("--study", "TEXT", "Title of the study.", default="")
@file_option(
    "--queries",
    "QUERIES",
    "Queries with their names (JSON), and the domain if no other option names one.",
)
@file_option("--policy", "FILE", "New file for the policy (JSON) that devices need.")
@domain_options
@checkpoint_file
@prints_result
def command(
    location: str,
    study: str,
    queries: Path | None,
    policy: Path | None,
    domain_options: DomainOptions,
    checkpoint: Path | None,
) -> Result:
    """Create a ledger with a domain and a budget, which never change.

    Name a LEDGER that does not exist: no ledger is ever overwritten. The command prompts for
    anything you don't pass as an option. It also creates the checkpoint and, next to that, the
    ticket key (ending in .key). Back up the key once. Never restore the checkpoint with the
    database.
    """
    named_queries: dict[str, Query] = {}
    domain_of_queries = None
    if queries is not None:
        with at(str(queries), ": "):
            domain_of_queries, named_queries = queries_from_json(read_text(queries))
    if policy is not None and policy.exists():
        raise InvalidInput("already exists; not overwritten", str(policy))
    domain, filter_, number_note = domain_options.read(domain_of_queries)
    if domain_of_queries is not None and domain_of_queries != domain:
        raise InvalidInput("its domain differs from the one in the options", f"{queries}")
    with Ledger.create(
        location, domain, filter=filter_, study=study, queries=named_queries, checkpoint=checkpoint
    ) as ledger:
        document, policy_id = ledger.policy.to_json(), ledger.policy.content_id
    if policy is not None:
        with at(str(policy), ": "):
            create(policy, f"{document}\n")
    lines = [
        f"A subject's value is {domain_in_words(domain)}.",
        number_note,
        f"Each subject's budget is {filter_.limit} ({filter_name(filter_)}).",
        f"Queries: {format_list(list(named_queries))}." if named_queries else "",
        "No subjects are registered yet.",
    ]
    tree = {"policy_id": policy_id, "study": study, "queries": list(named_queries)}
    return Result(tree, filter(None, lines))
