"""``expost query``: create a query file."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from expost import queries
from expost.cli._inputs import ABOUT_OPTIONS, option_names, read_attributes, read_domain
from expost.cli._options import about, flag_option, out_option, path, step, value_option
from expost.cli._outputs import Result, prints_result, warn
from expost.cli._parsing import (
    parse_definition,
    parse_entries,
    parse_labels,
    parse_number,
    parse_numbers,
    parse_range,
)
from expost.domains import Domain, FiniteSet, join_names
from expost.errors import InvalidInput, at, unknown_name
from expost.files.canonical import json_text, readable_tree
from expost.files.durable import create
from expost.files.reading import NumberText
from expost.filters._large_budgets import large_text
from expost.numbers import Nats
from expost.queries import FAMILIES, About, Query
from expost.queries.values.unary_encoding import VARIANTS
from expost.report._formatting import query_in_words

__all__ = ["command"]

# Others may have been registered.
_KINDS = [*(kind for kind in FAMILIES if hasattr(queries, kind)), *queries.SURVEY_DESIGNS]

#: Repeatable options, by the parameter that they make. Other options have its name.
_OPTIONS = {"weights": "--weight", "probabilities": "--row", "utility": "--row"}


def _find_constructor(kind: str) -> Callable[..., Query]:
    maker: Callable[..., Query] = getattr(queries, kind)
    return maker


@cache
def _read_parameters(kind: str) -> dict[str, bool]:
    """Return a family's parameters, and whether each is required, from its Python function."""
    parameters = inspect.signature(_find_constructor(kind)).parameters.values()
    return {p.name: p.default is p.empty for p in parameters}


def _option(parameter: str) -> str:
    return _OPTIONS.get(parameter, f"--{parameter}")


def _describe_parameters(kind: str) -> str:
    parameters = _read_parameters(kind).items()
    return ", ".join(
        _option(name) if needed else f"[{_option(name)}]" for name, needed in parameters
    )


class _Kind(click.Choice[str]):
    """One of the kinds. The error for another word suggests the kind that looks most like it."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in _KINDS:
            return value
        raise InvalidInput(unknown_name("kind", value, _KINDS))


class _Listing(click.Command):
    """Adds the options of each kind of query to the help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Kinds and their options"):
            formatter.write_dl([(kind, _describe_parameters(kind)) for kind in _KINDS])


@click.command("query", cls=_Listing)
@click.argument("kind", type=_Kind(_KINDS), metavar="KIND")
@value_option("--epsilon", "E", "Privacy parameter ε (exact, such as 0.5 or 1/3).")
@value_option(
    "--weight",
    "NAME=W",
    "Weight of a coordinate (age=-0.059), weights of categories (region=north:1,south:2), "
    "or a number if the coordinates have no names; repeatable.",
    parameter="weights",
    multiple=True,
)
@value_option("--intercept", "W", "Constant that is added to the weighted sum. Default: 0.")
@value_option("--range", "A..B", "Ends of the score or of the responses: 0..12.")
@flag_option("--clip", "Replace a score beyond the range by the nearest end.")
@value_option("--grid", "G", "Step of the grid: responses are its multiples.")
@value_option("--sigma", "S", "Standard deviation of Gaussian noise.")
@value_option("--delta", "D", "Delta of an (ε, δ) guarantee.")
@value_option(
    "--window",
    "N",
    "Number of grid steps that are more likely. Default: that of the published mechanism.",
)
@value_option("--scores", "LIST", "Score of each value of the domain: 0,3,10.")
@value_option("--responses", "LIST", "Possible responses: low,high.")
@value_option(
    "--row",
    "LIST",
    "Probabilities or utilities of the responses to one value (3/4,1/4). Repeat it for each value.",
    parameter="rows",
    multiple=True,
)
@value_option(
    "--of",
    "LIST",
    "Class of each value (0,0,1), if --row is given for each class, not for each value.",
)
@value_option("--p", "P", "Probability of the sensitive question or statement.")
@value_option("--prevalence", "P", "Share of yes among answers to a harmless question.")
@value_option("--truth", "P", "Probability of the true answer.")
@value_option("--yes", "P", "Probability of yes if a response is forced. Default: 1/2.")
@value_option(
    "--sensitivity",
    "S",
    "Largest distance between two values, or between two utilities of one response.",
)
@click.option("--variant", type=click.Choice(list(VARIANTS)), help="Variant of unary encoding.")
@value_option("--size", "N", "Number of values in a subset.")
@value_option(
    "--order", "N", "Order of the Hadamard matrix: a power of 2 above the number of values."
)
@value_option("--buckets", "N", "Number of buckets of the hash.")
@value_option("--seed", "HEX", "Hash seed (hex); use a different one per subject.")
@about
@step
@value_option(
    "--for",
    "FILE",
    "Transcript or domain (JSON) that the query must fit.",
    parameter="asked_of",
    type=path,
)
@out_option("OUT", "New file for the query. Default: print it.")
@prints_result
def command(
    kind: str,
    asked_of: Path | None,
    out: Path | None,
    rows: Sequence[str],
    about: str | None,
    step: int | None,
    **values: Any,
) -> Result:
    """Create a query file.

    KIND is a mechanism from the list below.
    """
    parameters = _read_parameters(kind)
    if rows:
        values["utility" if "utility" in parameters else "probabilities"] = rows
    query = _build_query(
        kind, {name: value for name, value in values.items() if value or value == ""}
    )
    fits = ""
    if kind in queries.SURVEY_DESIGNS:
        fits = f": {query_in_words(query, FiniteSet((0, 1)))}"
    if about is not None:
        query = query.about(*read_attributes(about), at=step)
    elif step is not None:
        raise InvalidInput("requires --about", "--at")
    if query.epsilon is not None and (large := large_text("an epsilon of", Nats(query.epsilon))):
        warn(large)
    tree = readable_tree(query.tagged_tree())
    if asked_of is not None:
        with at(str(asked_of), ": "):
            domain = read_domain(asked_of)
        _check_fits(query, domain)
        fits = f": {query_in_words(query, domain)}"
    text = json_text(tree, indent=2)
    if out is None:
        return Result(tree, text.split("\n"))
    with at(str(out), ": "):
        create(out, f"{text}\n")
    result = {"file": str(out), "query": tree, "content_id": query.content_id}
    return Result(result, [f"The query is in {out}{fits}."])


def _check_fits(query: Query, domain: Domain) -> None:
    """Refuse a query that does not work on a domain, in the words of the command line."""
    if domain.kinds and not isinstance(query, About):
        raise InvalidInput(f"name an attribute: {join_names(domain.names or ())}", "--about")
    with option_names(ABOUT_OPTIONS):
        query.on(domain)


def _build_query(kind: str, values: dict[str, Any]) -> Query:
    """Build a query of a kind from the values of options."""
    parameters = _read_parameters(kind)
    for name in values:
        if name not in parameters:
            raise InvalidInput(
                f"{kind} has no {_option(name)}; its options: {_describe_parameters(kind)}"
            )
    for name, needed in parameters.items():
        if needed and name not in values:
            raise InvalidInput(
                f"{kind} requires {_option(name)}; its options: {_describe_parameters(kind)}"
            )
    read = {}
    for name, typed_ in values.items():
        with at(_option(name), ": "):
            read[name] = _READERS.get(name, lambda value: value)(typed_)
    try:
        return _find_constructor(kind)(**read)
    except InvalidInput as error:
        name, dot, field = error.location.partition(".")
        base, bracket, index = name.partition("[")
        option = _option(base) if base in parameters else base
        raise InvalidInput(error.reason, f"{option}{bracket}{index}{dot}{field}") from None


def _parse_weights(texts: Sequence[str]) -> Any:
    """Read weights by name, or by position if none has a name."""
    if not any("=" in text or text.strip().isidentifier() for text in texts):
        return [parse_number(text) for text in texts]
    result: dict[str, Any] = {}
    for text in texts:
        name, weight = parse_definition(text, example="age=-0.059")
        with at(name):
            if name in result:
                raise InvalidInput("appears twice")
            result[name] = _parse_categories(weight) if ":" in weight else parse_number(weight)
    return result


def _parse_categories(text: str) -> dict[str, NumberText]:
    result: dict[str, NumberText] = {}
    for entry in parse_labels(text):
        label, colon, weight = entry.rpartition(":")
        if not colon or not label or label in result:
            raise InvalidInput("must have a weight for each category, such as north:1,south:2")
        result[label] = parse_number(weight)
    return result


def _parse_rows(texts: Sequence[str]) -> list[list[str]]:
    return [parse_labels(text) for text in texts]


_READERS: dict[str, Callable[[Any], Any]] = {
    "weights": _parse_weights,
    "probabilities": _parse_rows,
    "utility": _parse_rows,
    "range": parse_range,
    "scores": parse_numbers,
    "of": parse_numbers,
    "responses": parse_entries,
    **dict.fromkeys(("intercept", "window", "size", "order", "buckets"), parse_number),
}
