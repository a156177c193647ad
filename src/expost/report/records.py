"""Records and histories for people: what they can be, and how two of them differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from expost.domains import Attribute, Change, Domain, Record, Scalar, by_name
from expost.errors import printable
from expost.numbers import decimal_text
from expost.queries.words import listed

__all__ = ["record_in_words", "records_text"]

_LISTED = 4
_DIFFERENCES = 6


def record_in_words(domain: Domain) -> str:
    """What a record can be: its attributes, what they are and how they change."""
    each = [
        f"{name} {_attribute(kind)}"
        for name, kind in zip(domain.called(""), domain.kinds, strict=True)
    ]
    if len(each) > _LISTED + 1:
        each = [*each[:_LISTED], f"and {len(each) - _LISTED:,} more attributes"]
    return f"a record: {'; '.join(each)}"


def _attribute(kind: Attribute) -> str:
    values = kind.values.values
    what = (
        f"an integer from {values[0]} to {values[-1]}"
        if kind.integers
        else f"one of {listed(values, 'or')}"
    )
    return what if kind.change is None else f"{what}, changing {_change(kind.change)}"


def _change(change: Change) -> str:
    if change.times is not None:
        often = {0: "never", 1: "at most once", 2: "at most twice"}
        return often.get(change.times, f"at most {change.times:,} times")
    if change.max_step is not None:
        return f"by at most {decimal_text(change.max_step)} a step"
    return "freely from step to step"


def records_text(first: Record, second: Record) -> tuple[str, str]:
    """Where two records differ; after the second one, that all else is alike."""
    pairs = [pair for name in first for pair in _pairs(name, first[name], second[name])]
    above, below = [], []
    for (name, a, b), run in groupby(pairs, key=lambda pair: (pair[0], *pair[2:])):
        if a != b:
            when = _when([step for _, step, _, _ in run])
            above.append(by_name([name], [a]) + when)
            below.append(by_name([name], [b]) + when)
    alike = ", all else alike" if any(a == b for _, _, a, b in pairs) else ""
    return _some(above), _some(below) + alike


def _pairs(name: str, first: Any, second: Any) -> Iterator[tuple[str, int | None, Scalar, Scalar]]:
    """The values of an attribute in two records, at each step if it changes."""
    if isinstance(first, dict):
        yield from ((name, step, x, second[step]) for step, x in first.items())
    else:
        yield name, None, first, second


def _when(steps: Sequence[int | None]) -> str:
    if steps[0] is None:
        return ""
    return f" at step {steps[0]}" if len(steps) == 1 else f" at steps {steps[0]} to {steps[-1]}"


def _some(texts: Sequence[str]) -> str:
    shown = [*texts[:_DIFFERENCES]]
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown):,} more")
    return printable(", ".join(shown))
