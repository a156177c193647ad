"""Options for a domain and a budget, which commands prompt for if they are missing."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import click

from expost._format import format_list
from expost.cli._inputs import option_names, read_domain
from expost.cli._options import file_option, value_option
from expost.cli._outputs import warn
from expost.cli._parsing import parse_definition, parse_side, parse_values
from expost.domains import Domain, domain_from_json
from expost.errors import InvalidInput, at, read_at
from expost.files.reading import members
from expost.filters import (
    ApproximateFilter,
    BasicFilter,
    BayesianFilter,
    Filter,
    SimplifiedFilter,
)
from expost.filters._large_budgets import large_text

__all__ = ["DomainOptions", "domain_options"]

_FILTERS: dict[str, type[Filter]] = {
    class_.kind: class_ for class_ in (BayesianFilter, SimplifiedFilter, BasicFilter)
}
_EXAMPLE = "age=10..100, sex=integers:0..1 or region=north,south"

Command = TypeVar("Command", bound=Callable[..., None])
T = TypeVar("T")

_CHOICES = [
    value_option("--values", "LIST", "All possible values, such as no,yes or 0..10 (integers)."),
    value_option(
        "--coordinate",
        "NAME=SIDE",
        f"One coordinate of a box (repeatable), such as {_EXAMPLE}. Replaces --values.",
        parameter="coordinates",
        multiple=True,
    ),
    file_option(
        "--domain",
        "DOMAIN",
        "File with the domain (JSON), such as a transcript. Replaces --values and --coordinate.",
    ),
    value_option("--budget", "E", "Budget in nats (exact, such as 0.5 or 1/3)."),
    click.option(
        "--filter",
        "kind",
        type=click.Choice(list(_FILTERS)),
        default=BayesianFilter.kind,
        help="Privacy filter. basic adds up the epsilons; the others use the realized loss.",
    ),
    value_option("--delta", "D", "Delta of an (ε, δ) budget. Default: none."),
]


@dataclass(frozen=True, slots=True)
class DomainOptions:
    """The options for a domain and a budget."""

    values: str | None
    coordinates: Sequence[str]
    domain: Path | None
    budget: str | None
    kind: str
    delta: str | None

    def read(self, otherwise: Domain | None = None) -> tuple[Domain, Filter, str]:
        """Read the options, and prompt for missing ones.

        Args:
            otherwise: The domain if no option names one.

        Returns:
            The domain, the filter, and a note on values that were read as numbers, or nothing.
        """
        if sum(map(bool, (self.values, self.coordinates, self.domain))) > 1:
            raise InvalidInput("give one of --values, --coordinate and --domain")
        domain = self._read_domain() or otherwise or _prompt(_DOMAIN_PROMPT, _parse_domain)
        filter_ = self._read_filter()
        if large := large_text("a budget of", filter_.budget):
            warn(large)
        from_text = self.domain is None and otherwise is None
        return domain, filter_, _describe_numbers(domain) if from_text else ""

    def _read_domain(self) -> Domain | None:
        """Return the domain that options name; None if none does."""
        if self.values is not None:
            return read_at("--values", _parse_set, self.values)
        if self.coordinates:
            return read_at("--coordinate", _parse_box, self.coordinates)
        if self.domain is not None:
            with at(str(self.domain), ": "):
                return read_domain(self.domain)
        return None

    def _read_filter(self) -> Filter:
        if self.delta is not None and self.kind != BayesianFilter.kind:
            raise InvalidInput("requires the filter bayesian", "--delta")
        if self.budget is None:
            return _prompt("Budget, in nats, such as 1: ", self._make_filter)
        with option_names({"epsilon": "--budget", "delta": "--delta"}):
            return self._make_filter(self.budget)

    def _make_filter(self, budget: str) -> Filter:
        if self.delta is not None:
            return ApproximateFilter(budget, self.delta)
        return _FILTERS[self.kind](budget)


def domain_options(command: Command) -> Callable[..., None]:
    """Add options for a domain and a budget; the command gets ``domain_options``."""

    @functools.wraps(command)
    def called(**options: Any) -> None:
        names = [field.name for field in fields(DomainOptions)]
        chosen = DomainOptions(**{name: options.pop(name) for name in names})
        command(domain_options=chosen, **options)

    for option in reversed(_CHOICES):
        called = option(called)
    return called


def _parse_set(text: str) -> Domain:
    """Parse a finite domain; refuse one with a single value, which cannot be asked about."""
    try:
        domain = domain_from_json(parse_values(text))
    except InvalidInput as error:
        raise InvalidInput(error.reason) from None  # it shows the value
    if len(domain.values) == 1:
        raise InvalidInput("only one value; separate values with commas, as in no,yes")
    return domain


def _describe_numbers(domain: Domain) -> str:
    """Return a note on values read as numbers; none if they count up, as 0, 1, … do."""
    numeric = [value for value in domain.values if isinstance(value, (int, float))]
    plain = all(value == numeric[0] + offset for offset, value in enumerate(numeric))
    if not numeric or (plain and len(numeric) == len(domain.values)):
        return ""
    return f"Read as numbers: {format_list([*numeric])}. What stands in quotes is a label."


def _parse_box(coordinates: Sequence[str]) -> Domain:
    sides: dict[str, Any] = {}
    for text in coordinates:
        name, side_text = parse_definition(text, example=_EXAMPLE)
        with at(name):
            if name in sides:
                raise InvalidInput("appears twice")
            sides[name] = parse_side(side_text)
    try:
        return domain_from_json({"box": members(sides, optional=None)})
    except InvalidInput as error:
        raise InvalidInput(error.reason, error.location.removeprefix("box.")) from None


_DOMAIN_PROMPT = """\
What can the subject's value be? List all that it can be, such as never,sometimes,often or 0..10.
Or give the coordinates of a box, such as age=10..100 sex=integers:0..1 region=north,south.
Value: """


def _parse_domain(text: str) -> Domain:
    """Parse coordinates if there is a name before an equals sign, values otherwise."""
    if "=" not in text:
        return _parse_set(text)
    import shlex

    try:
        return _parse_box(shlex.split(text))
    except ValueError:
        raise InvalidInput("a quotation mark is not closed") from None


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
