"""Options for a domain and a budget, which commands prompt for if they are missing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from expost._format import format_list
from expost.cli._inputs import read_domain
from expost.cli._options import file_option
from expost.cli._outputs import warn
from expost.cli._parsing import parse_definition, parse_side, parse_values
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at
from expost.files.reading import members
from expost.filters import (
    ApproximateFilter,
    BasicFilter,
    BayesianFilter,
    Filter,
    SimplifiedFilter,
)
from expost.filters._large_budgets import large_text

__all__ = ["ReadDomainAndFilter", "domain_options"]

_FILTERS: dict[str, type[Filter]] = {
    class_.kind: class_ for class_ in (BayesianFilter, SimplifiedFilter, BasicFilter)
}
_OPTIONS = {"epsilon": "--budget", "delta": "--delta"}
_EXAMPLE = "age=10..100, sex=integers:0..1 or region=north,south"

ReadDomainAndFilter = Callable[..., tuple[Domain, Filter, str]]
"""Gives a domain, a filter, and what to say about how the domain was read, if anything."""

Command = TypeVar("Command", bound=Callable[..., None])
T = TypeVar("T")

_CHOICES = [
    click.option(
        "--values", metavar="LIST", help="All that the value can be: no,yes or the integers 0..10."
    ),
    click.option(
        "--coordinate",
        "coordinates",
        multiple=True,
        metavar="NAME=SIDE",
        help=f"In place of values, one for each coordinate of a box: {_EXAMPLE}.",
    ),
    file_option("--domain", "DOMAIN", "In place of both, a file that has the domain (JSON)."),
    click.option("--budget", metavar="E", help="The budget in nats, exact as written."),
    click.option(
        "--filter",
        "kind",
        type=click.Choice(list(_FILTERS)),
        default=BayesianFilter.kind,
        help="What is held against the budget: the realized loss, or with basic the epsilons.",
    ),
    click.option("--delta", metavar="D", help="For an (epsilon, delta) budget, of Algorithm 4."),
]


def domain_options(command: Command) -> Callable[..., None]:
    """Add options for a domain and a budget; the command gets ``read_domain_and_filter``.

    It reads the options and prompts for missing ones. Its argument is the domain to use if
    no option names one.
    """

    @functools.wraps(command)
    def called(
        values: str | None,
        coordinates: Sequence[str],
        domain: Path | None,
        budget: str | None,
        kind: str,
        delta: str | None,
        **options: Any,
    ) -> None:
        def read_domain_and_filter(otherwise: Domain | None = None) -> tuple[Domain, Filter, str]:
            if sum(map(bool, (values, coordinates, domain))) > 1:
                raise InvalidInput("give one of --values, --coordinate and --domain")
            domain_in_options = _domain_from_options(values, coordinates, domain)
            chosen_domain = (
                domain_in_options or otherwise or _prompt(_DOMAIN_PROMPT, _domain_from_text)
            )
            from_text = domain is None and otherwise is None
            filter_ = _read_filter(budget, kind, delta)
            if large := large_text("a budget of", filter_.budget):
                warn(large)
            return chosen_domain, filter_, _number_note(chosen_domain) if from_text else ""

        command(read_domain_and_filter=read_domain_and_filter, **options)

    for option in reversed(_CHOICES):
        called = option(called)
    return called


def _domain_from_options(
    values: str | None, coordinates: Sequence[str], file: Path | None
) -> Domain | None:
    """Return the domain that options name; None if none does."""
    if values is not None:
        with at("--values"):
            return _finite_domain(values)
    if coordinates:
        with at("--coordinate"):
            return _box_domain(coordinates)
    if file is not None:
        with at(str(file), ": "):
            return read_domain(file)
    return None


def _finite_domain(text: str) -> Domain:
    """Parse a finite domain; refuse one with a single value, which cannot be asked about."""
    try:
        domain = domain_from_json(parse_values(text))
    except InvalidInput as error:
        raise InvalidInput(error.reason, error.location.removeprefix("values")) from None
    if len(domain.values) == 1:
        raise InvalidInput("only one value; separate values with commas, as in no,yes")
    return domain


def _number_note(domain: Domain) -> str:
    """Return a note on values read as numbers; none if they count up, as 0, 1, … do."""
    numeric = [value for value in domain.values if isinstance(value, (int, float))]
    plain = all(value == numeric[0] + offset for offset, value in enumerate(numeric))
    if not numeric or (plain and len(numeric) == len(domain.values)):
        return ""
    return f"Read as numbers: {format_list([*numeric])}. What stands in quotes is a label."


def _box_domain(coordinates: Sequence[str]) -> Domain:
    sides: dict[str, Any] = {}
    for text in coordinates:
        name, side_text = parse_definition(text, example=_EXAMPLE)
        with at(name):
            if name in sides:
                raise InvalidInput("is given twice")
            sides[name] = parse_side(side_text)
    return domain_from_json({"box": members(sides, optional=None)})


_DOMAIN_PROMPT = """\
What can the subject's value be? List all that it can be, such as never,sometimes,often or 0..10.
Or give the coordinates of a box, such as age=10..100 sex=integers:0..1 region=north,south.
Value: """


def _domain_from_text(text: str) -> Domain:
    """Parse coordinates if there is a name before an equals sign, values otherwise."""
    if "=" not in text:
        return _finite_domain(text)
    import shlex

    try:
        return _box_domain(shlex.split(text))
    except ValueError:
        raise InvalidInput("a quotation mark has no other") from None


def _read_filter(budget: str | None, kind: str, delta: str | None) -> Filter:
    if delta is not None and kind != BayesianFilter.kind:
        raise InvalidInput("requires the filter bayesian", "--delta")

    def read(text: str) -> Filter:
        if delta is not None:
            return ApproximateFilter(text, delta)
        return _FILTERS[kind](text)

    if budget is None:
        return _prompt("Budget, in nats, such as 1: ", read)
    try:
        return read(budget)
    except InvalidInput as error:
        raise InvalidInput(error.reason, _OPTIONS.get(error.location, error.location)) from None


def _prompt(question: str, read: Callable[[str], T]) -> T:
    """Ask, and ask again where the answer cannot be read."""
    while True:
        click.echo(question, nl=False, err=True)  # standard output is for the result
        try:
            answer = input()
        except EOFError:
            click.echo(err=True)
            raise InvalidInput(
                "no answer on standard input; pass --values, --coordinate or --domain, and --budget"
            ) from None
        try:
            return read(answer)
        except InvalidInput as error:
            click.echo(str(error), err=True)
