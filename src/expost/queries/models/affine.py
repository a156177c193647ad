"""Affine functions of columns, in exact fractions: what every supported step and model is.

A step of a pipeline is a map: a function for each column that it makes. A model is one function.
Putting one into the other is all that folding a pipeline takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from expost.errors import InvalidInput
from expost.files.reading import double, each

__all__ = ["Affine", "Input", "Map", "after", "column", "exact"]


class Input(NamedTuple):
    """A column by its place, or whether it has a category: one of those that an encoder knows."""

    place: int
    label: str | None = None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ weight·input."""

    weights: Mapping[Input, Fraction]
    constant: Fraction = Fraction(0)

    def of(self, columns: Sequence[Affine]) -> Affine:
        """This function of columns that are themselves functions of something."""
        weights: dict[Input, Fraction] = {}
        constant = self.constant
        for where, weight in self.weights.items():
            inner = columns[where.place]
            if where.label is not None:
                inner = column(where._replace(place=_unchanged(inner)))
            constant += weight * inner.constant
            for key, factor in inner.weights.items():
                weights[key] = weights.get(key, Fraction(0)) + weight * factor
        return Affine(weights, constant)

    def times(self, factor: Fraction) -> Affine:
        weights = {key: factor * weight for key, weight in self.weights.items()}
        return Affine(weights, factor * self.constant)


Map = Sequence[Affine]
"""The columns that a step makes, as functions of those that it takes."""


def column(where: Input) -> Affine:
    """What is there, as it is."""
    return Affine({where: Fraction(1)})


def after(first: Map, second: Map) -> Map:
    """What the second map makes of what the first has made."""
    return [function.of(first) for function in second]


def exact(numbers: Iterable[Any], place: str) -> list[Fraction]:
    return [Fraction(number) for number in each(numbers, double, place)]


def _unchanged(function: Affine) -> int:
    """The place of a column that nothing was done to, for only such a one has categories."""
    (where, *others) = function.weights or [Input(-1)]
    if others or function != column(where) or where.label is not None:
        raise InvalidInput("changes a column before its categories are encoded")
    return where.place
