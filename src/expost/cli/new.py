"""``expost new``: the first file of a subject, with a domain, a budget, and nothing asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from expost.cli import typed
from expost.cli.options import as_json, path
from expost.cli.show import show_json
from expost.domains import Domain, Value, domain_from_json
from expost.errors import InvalidInput, at, printable
from expost.files.durable import create
from expost.files.reading import members
from expost.filters import (
    ApproximateFilter,
    BasicFilter,
    BayesianFilter,
    Filter,
    SimplifiedFilter,
)
from expost.queries.words import listed
from expost.report.words import domain_in_words
from expost.transcript import Transcript

__all__ = ["command"]

_FILTERS: dict[str, type[Filter]] = {
    each.kind: each for each in (BayesianFilter, SimplifiedFilter, BasicFilter)
}
_OPTIONS = {"epsilon": "--budget", "delta": "--delta"}
_EXAMPLE = "age=10..100, sex=integers:0..1 or region=north,south"

T = TypeVar("T")


@click.command("new")
@click.argument("file", type=path, metavar="FILE")
@click.option(
    "--values", metavar="LIST", help="All that the value can be: no,yes or the integers 0..10."
)
@click.option(
    "--coordinate",
    "coordinates",
    multiple=True,
    metavar="NAME=SIDE",
    help=f"In place of values, one for each coordinate of a box: {_EXAMPLE}.",
)
@click.option(
    "--domain",
    type=path,
    metavar="DOMAIN",
    help="In place of both, a file that has the domain (JSON).",
)
@click.option("--budget", metavar="E", help="The budget in nats, exact as written.")
@click.option(
    "--filter",
    "kind",
    type=click.Choice(list(_FILTERS)),
    default=BayesianFilter.kind,
    help="What is held against the budget: the realized loss, or with basic the epsilons.",
)
@click.option("--delta", metavar="D", help="For an (epsilon, delta) budget, of Algorithm 4.")
@as_json
def command(
    file: Path,
    values: str | None,
    coordinates: Sequence[str],
    domain: Path | None,
    budget: str | None,
    kind: str,
    delta: str | None,
    as_json: bool,
) -> None:
    """Write the first transcript of a subject.

    It has a domain and a budget, and nothing was asked so far. What no option says is asked for.
    FILE must not be there yet: domain and budget are fixed before the first response, and no file
    is ever written over.
    """
    if file.exists() or file.is_symlink():
        raise InvalidInput("is there already, and is not written over", str(file))
    if sum(map(bool, (values, coordinates, domain))) > 1:
        raise InvalidInput("give one of --values, --coordinate and --domain")
    told = _domain(values, coordinates, domain) or _asked(_QUESTION, _answered)
    guard = _guard(budget, kind, delta)
    transcript = Transcript(told, guard)
    with at(str(file), ": "):
        create(file, transcript.to_json())
    if as_json:
        show_json({"file": str(file), "content_id": transcript.content_id})
        return
    click.echo(printable(f"The subject's value is {domain_in_words(told)}."))
    if domain is None and (numbers := _numbers(told)):
        click.echo(f"Read as numbers: {listed(numbers)}. What stands in quotes is a label.")
    click.echo(f"The budget is {guard.limit} ({guard.kind} filter). Nothing was asked so far.")
    click.echo(printable(f"The transcript is in {file}."))


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
            return typed.read_domain(file)
    return None


def _listed(text: str) -> Domain:
    """The finite domain that was typed; of one value there is nothing to ask."""
    try:
        found = domain_from_json(typed.values(text))
    except InvalidInput as error:
        raise InvalidInput(error.reason, error.place.removeprefix("values")) from None
    if len(found.values) == 1:
        raise InvalidInput("there is only one value; commas are between values, as in no,yes")
    return found


def _numbers(domain: Domain) -> list[Value]:
    """The values that were taken for numbers, unless that goes without saying: 0, 1, 2, …"""
    found = [value for value in domain.values if isinstance(value, (int, float))]
    plain = all(value == found[0] + place for place, value in enumerate(found))
    return [] if plain and len(found) == len(domain.values) else [*found]


def _box(coordinates: Sequence[str]) -> Domain:
    sides: dict[str, Any] = {}
    for text in coordinates:
        name, what = typed.named(text, example=_EXAMPLE)
        with at(name):
            if name in sides:
                raise InvalidInput("is given twice")
            sides[name] = typed.side(what)
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
