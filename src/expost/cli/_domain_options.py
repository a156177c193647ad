"""Options for a domain and a budget, which commands prompt for if they are missing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from expost._format import format_list
from expost.cli import _parsing
from expost.cli._inputs import read_domain
from expost.cli._options import path
from expost.cli._outputs import warn
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

__all__ = ["Fix", "fixed"]

_FILTERS: dict[str, type[Filter]] = {
    each.kind: each for each in (BayesianFilter, SimplifiedFilter, BasicFilter)
}
_OPTIONS = {"epsilon": "--budget", "delta": "--delta"}
_EXAMPLE = "age=10..100, sex=integers:0..1 or region=north,south"

Fix = Callable[..., tuple[Domain, Filter, str]]
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
    click.option(
        "--domain",
        type=path,
        metavar="DOMAIN",
        help="In place of both, a file that has the domain (JSON).",
    ),
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


def fixed(command: Command) -> Callable[..., None]:
    """Options for a domain and a budget; the command gets ``fix``, which reads or asks for them.

    It is given a domain for when no option names one, or None to ask for it.
    """

    @functools.wraps(command)
    def called(
        values: str | None,
        coordinates: Sequence[str],
        domain: Path | None,
        budget: str | None,
        kind: str,
        delta: str | None,
        **others: Any,
    ) -> None:
        def fix(otherwise: Domain | None = None) -> tuple[Domain, Filter, str]:
            if sum(map(bool, (values, coordinates, domain))) > 1:
                raise InvalidInput("give one of --values, --coordinate and --domain")
            named = _domain(values, coordinates, domain)
            told = named or otherwise or _asked(_QUESTION, _answered)
            typed_here = domain is None and otherwise is None
            guard = _guard(budget, kind, delta)
            if large := large_text("a budget of", guard.budget):
                warn(large)
            return told, guard, _as_numbers(told) if typed_here else ""

        command(fix=fix, **others)

    for option in reversed(_CHOICES):
        called = option(called)
    return called


def _domain(values: str | None, coordinates: Sequence[str], file: Path | None) -> Domain | None:
    """The domain that options name; None if none does."""
    if values is not None:
        with at("--values"):
            return _listed(values)
    if coordinates:
        with at("--coordinate"):
            return _box(coordinates)
    if file is not None:
        with at(str(file), ": "):
            return read_domain(file)
    return None


def _listed(text: str) -> Domain:
    """The finite domain that was typed; of one value there is nothing to ask."""
    try:
        found = domain_from_json(_parsing.values(text))
    except InvalidInput as error:
        raise InvalidInput(error.reason, error.place.removeprefix("values")) from None
    if len(found.values) == 1:
        raise InvalidInput("there is only one value; commas are between values, as in no,yes")
    return found


def _as_numbers(domain: Domain) -> str:
    """What to say of values that were taken for numbers, unless it goes without saying: 0, 1, …"""
    found = [value for value in domain.values if isinstance(value, (int, float))]
    plain = all(value == found[0] + place for place, value in enumerate(found))
    if not found or (plain and len(found) == len(domain.values)):
        return ""
    return f"Read as numbers: {format_list([*found])}. What stands in quotes is a label."


def _box(coordinates: Sequence[str]) -> Domain:
    sides: dict[str, Any] = {}
    for text in coordinates:
        name, what = _parsing.named(text, example=_EXAMPLE)
        with at(name):
            if name in sides:
                raise InvalidInput("is given twice")
            sides[name] = _parsing.side(what)
    return domain_from_json({"box": members(sides, optional=None)})


_QUESTION = """\
What can the subject's value be? List all that it can be, such as never,sometimes,often or 0..10.
Or give the coordinates of a box, such as age=10..100 sex=integers:0..1 region=north,south.
Value: """


def _answered(text: str) -> Domain:
    """What was typed: coordinates if there is a name before an equals sign, values otherwise."""
    if "=" not in text:
        return _listed(text)
    import shlex

    try:
        return _box(shlex.split(text))
    except ValueError:
        raise InvalidInput("a quotation mark has no other") from None


def _guard(budget: str | None, kind: str, delta: str | None) -> Filter:
    if delta is not None and kind != BayesianFilter.kind:
        raise InvalidInput("goes with the filter bayesian only", "--delta")

    def read(text: str) -> Filter:
        if delta is not None:
            return ApproximateFilter(text, delta)
        return _FILTERS[kind](text)

    if budget is None:
        return _asked("Budget, in nats, such as 1: ", read)
    try:
        return read(budget)
    except InvalidInput as error:
        raise InvalidInput(error.reason, _OPTIONS.get(error.place, error.place)) from None


def _asked(question: str, read: Callable[[str], T]) -> T:
    """Ask, and ask again where the answer cannot be read."""
    while True:
        click.echo(question, nl=False, err=True)  # standard output is for the result
        try:
            answer = input()
        except EOFError:
            click.echo(err=True)
            raise InvalidInput(
                "there is nobody to ask; give --values, --coordinate or --domain, and --budget"
            ) from None
        try:
            return read(answer)
        except InvalidInput as error:
            click.echo(str(error), err=True)
