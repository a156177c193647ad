"""The part of a record that a command is about: ``--about ATTRIBUTES`` and ``--at STEP``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from expost.answers import Answers
from expost.cli import typed
from expost.domains import some
from expost.errors import InvalidInput, at, meant
from expost.queries import About

__all__ = ["about", "attributes", "named", "options", "step"]

about = click.option(
    "--about",
    metavar="NAMES",
    help="Of a record: the attribute, smokes, or some of them together, smokes,region.",
)
step = click.option(
    "--at", "step", type=int, metavar="STEP", help="The step, if one of them changes."
)

_OPTIONS = {"about": "--about", "at": "--at"}


def attributes(text: str) -> tuple[str, ...]:
    """What was typed after ``--about``."""
    with at("--about"):
        return tuple(typed.labels(text))


def named(
    answers: Answers, text: str | None, step: int | None, *, key: str | None
) -> tuple[tuple[str, ...], int | None] | None:
    """The attributes that an estimate is about, and the step; None on a set, or a whole box.

    By default it is the only attribute that was asked about, or what the query ``key`` is about,
    and the only step.
    """
    if text is None and step is None and not answers.domain.kinds:
        return None
    answered = dict.fromkeys(name for name, _ in answers.given)
    asked = {name: query for name in answered if isinstance(query := answers.queries[name], About)}
    if not asked:
        place = "--at" if text is None else "--about"
        raise InvalidInput("no query is about some attributes; leave it out", place)
    names = _names(asked, text, key)
    return names, _step(asked, names, key) if step is None else step


@contextmanager
def options() -> Iterator[None]:
    """Errors about attributes and steps name what was typed."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(error.reason, _OPTIONS.get(error.place, error.place)) from None


def _names(asked: Mapping[str, About], text: str | None, key: str | None) -> tuple[str, ...]:
    known = tuple(dict.fromkeys(name for query in asked.values() for name in query.names))
    if text is not None:
        names = attributes(text)
        for name in names:
            if name not in known:
                reason = f"nobody was asked about {name!r}; they were asked about {some(known)}"
                raise InvalidInput(reason + meant(name, known), "--about")
        return names
    if key is not None and key in asked:
        return asked[key].names
    if len(known) > 1:
        raise InvalidInput(
            f"say about which attribute, of {some(known)}; or about some of them together, "
            f"such as {','.join(known[:2])}",
            "--about",
        )
    return known


def _step(asked: Mapping[str, About], names: tuple[str, ...], key: str | None) -> int | None:
    if key is not None and key in asked:
        return asked[key].step
    steps = {query.step for query in asked.values() if set(names) & set(query.names)} - {None}
    if len(steps) > 1:
        told = some([str(each) for each in sorted(filter(None, steps))])
        raise InvalidInput(f"say at which step; {some(names)} was asked about at {told}", "--at")
    return next(iter(steps), None)
