"""Exact sums of products of tables, variable by variable.

The plans are those of the loss, with products in the place of sums and sums in the place of maxima.
All numbers are integers of any size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Variable
from expost.errors import InvalidInput
from expost.loss._elimination import plan, rank

__all__ = ["Factor", "Integers", "connected", "integers", "sum_of_products"]

Integers = NDArray[np.object_]
"""Python integers of any size."""

_MOST_MEMORY = 1 << 33
"""In bits, for the largest table on the way: a gigabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Non-negative integers for all combinations of some variables, with an axis for each."""

    variables: tuple[Variable, ...]
    weights: Integers

    @classmethod
    def of(cls, variables: Sequence[Variable], weights: Integers) -> Factor:
        """A factor whose axes follow the order of its variables, whatever order was given."""
        axes = sorted(range(len(variables)), key=lambda k: rank(variables[k]))
        return cls(tuple(variables[k] for k in axes), weights.transpose(axes))

    @property
    def bits(self) -> int:
        """How many bits a weight has, at most."""
        return int(max(self.weights.ravel().tolist())).bit_length()


def integers(weights: Any, shape: tuple[int, ...]) -> Integers:
    """Python integers in an array; NumPy's own would overflow."""
    result = np.empty(prod(shape), dtype=object)
    result[:] = [int(weight) for weight in weights]
    return result.reshape(shape)


def sum_of_products(
    factors: Sequence[Factor], sizes: Mapping[Variable, int], target: Sequence[Variable]
) -> Integers:
    """The sum over all variables but those of the target, which has its axes in their order."""
    kept = tuple(sorted(target, key=rank))
    shape = tuple(sizes[variable] for variable in kept)
    tables = [*factors, Factor(kept, integers([1] * prod(shape), shape))]
    variables = {variable for factor in tables for variable in factor.variables}
    planned = plan(
        tuple((variable, sizes[variable]) for variable in sorted(variables, key=rank)),
        tuple(factor.variables for factor in tables),
        kept,
    )
    widest = max(prod(step.sizes) for step in planned.steps)
    if widest * sum(factor.bits for factor in factors) > _MOST_MEMORY:
        raise InvalidInput(f"too many responses for exact numbers on {widest:,} combinations")
    operands = [factor.weights for factor in tables]
    for step in planned.steps:
        first, *others = step.operands
        total = operands[first.number].reshape(first.shape)
        for other in others:
            total = total * operands[other.number].reshape(other.shape)
        if step.axis is None:
            break
        operands.append(np.asarray(total.sum(axis=step.axis), dtype=object))
    return np.asarray(total, dtype=object)


def connected(factors: Iterable[Factor], wanted: Iterable[Variable]) -> list[Factor]:
    """Those that some variables depend on, perhaps by way of others."""
    waiting, reached, found = list(factors), set(wanted), list[Factor]()
    while True:
        near = [factor for factor in waiting if not reached.isdisjoint(factor.variables)]
        if not near:
            return found
        found += near
        waiting = [factor for factor in waiting if reached.isdisjoint(factor.variables)]
        reached.update(variable for factor in near for variable in factor.variables)
