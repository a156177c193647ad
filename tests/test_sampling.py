"""Draws: exact, and blind to the secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.queries import NoisyInteger, Query
from expost.queries.noise.geometric import ClampedNoise
from expost.queries.noise.piecewise import Plateau
from expost.queries.values.hadamard_response import SignedColumns
from expost.queries.values.subset_selection import SpikedSubsets
from expost.queries.values.unary_encoding import NoisyBits
from expost.sampling import (
    Categorical,
    InsecureSource,
    Pmf,
    Spiked,
    SystemSource,
    _divide,
    digits,
    draw,
)
from support.query_families import DOMAIN, QUERIES
from support.random_cases import queries


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5).filter(any))
def test_a_categorical_draw_has_exactly_the_declared_probabilities(weights: list[int]) -> None:
    _check_every_outcome(Categorical(tuple(weights)), len(weights))


@given(st.integers(1, 6), st.data())
def test_a_spiked_draw_has_exactly_the_declared_probabilities(
    size: int, data: st.DataObject
) -> None:
    spike = data.draw(st.integers(0, size - 1))
    heavy, light = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5))
    _check_every_outcome(Spiked(size, spike, heavy, light), size)


@given(st.integers(1, 4), st.integers(0, 4), st.integers(1, 9), st.integers(1, 5), st.data())
def test_a_draw_from_a_plateau_has_exactly_the_declared_probabilities(
    width: int, others: int, heavy: int, light: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, others))
    _check_every_outcome(Plateau(width + others, start, width, heavy, light), width + others)


def _check_every_outcome(pmf: Pmf, size: int) -> None:
    counts = Counter(pmf.pick(uniform) for uniform in range(pmf.total))
    for position in range(size):
        assert Fraction(counts[position], pmf.total) == pmf.probability(position)
    assert sum(pmf.probability(position) for position in range(size)) == 1


@given(st.integers(1, 5).flatmap(lambda n: st.tuples(st.just(n), queries(n))))
def test_the_sampler_and_the_loss_read_the_same_weights(case: tuple[int, Query]) -> None:
    size, query = case
    domain = xp.FiniteSet(range(size))
    likelihood = query.on(domain)
    pmfs = [likelihood.pmf(value) for value in range(size)]
    assert len({pmf.total for pmf in pmfs}) == 1
    for position in range(len(likelihood.responses)):
        weights = [int(weight) for weight in likelihood.weights(position)]
        # Weights are probabilities up to one factor for all values.
        factors = {
            pmf.probability(position) / weight for pmf, weight in zip(pmfs, weights, strict=True)
        }
        assert len(factors) == 1
    for pmf in pmfs:
        assert sum(pmf.probability(y) for y in range(len(likelihood.responses))) == 1


class Spy:
    """Records what is asked of the source of randomness."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    def below(self, limit: int) -> int:
        self.limits.append(limit)
        return limit // 2


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_every_secret_asks_for_the_same_randomness(query: Query) -> None:
    asked = set()
    for value in range(len(DOMAIN)):
        spy = Spy()
        draw(query.on(DOMAIN).pmf(value), spy)
        asked.add(tuple(spy.limits))
    assert len(asked) == 1
    assert len(asked.pop()) == 1


@given(st.integers(0, 30), st.integers(2, 99), st.data())
def test_digits_are_those_of_the_number(count: int, base: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, base**count - 1))
    found = digits(number, base, count)
    assert len(found) == count
    assert all(0 <= digit < base for digit in found)
    assert sum(digit * base**place for place, digit in enumerate(found)) == number


def test_the_system_source_is_uniform_below_its_limit() -> None:
    source = SystemSource()
    counts = Counter(source.below(3) for _ in range(3000))
    # Each count is within 6 standard deviations: a false alarm once in 10^8 runs.
    assert set(counts) == {0, 1, 2}
    assert all(abs(count - 1000) < 6 * 26 for count in counts.values())


def test_the_insecure_source_repeats_itself() -> None:
    first, second = InsecureSource(5), InsecureSource(5)
    assert [first.below(10**20) for _ in range(9)] == [second.below(10**20) for _ in range(9)]


def test_a_pmf_does_not_show_its_weights() -> None:
    assert "object at" in repr(Categorical((1, 2)))
    assert "object at" in repr(Spiked(3, 1, 2, 1))


class Counted(int):
    """An integer that counts what is done with it."""


operations: Counter[str] = Counter()


def _counted(name: str) -> Callable[[Counted, int], Any]:
    def operation(self: Counted, other: int) -> Any:
        operations[name] += 1
        return getattr(int, name)(self, other)

    return operation


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__floordiv__", "__divmod__"):
    setattr(Counted, _name, _counted(_name))


@pytest.mark.parametrize(
    "pmfs",
    [
        [Categorical((1, 2, 3, 4)), Categorical((4, 3, 2, 1)), Categorical((0, 10, 0, 0))],
        [Spiked(6, spike, 5, 2) for spike in range(6)],
        [NoisyBits(3, spike, (2, 3), (4, 1)) for spike in range(3)],
        [SpikedSubsets(5, 2, spike, 3, 2) for spike in range(5)],
        [SignedColumns(8, row, 3, 2) for row in range(1, 8)],
        [NoisyInteger(ClampedNoise(0, 2, 4, 3, 2), value) for value in range(-2, 5)],
    ],
    ids=["categorical", "spiked", "bits", "subsets", "columns", "integers"],
)
def test_every_draw_does_the_same_operations(pmfs: list[Pmf]) -> None:
    seen = set()
    for pmf in pmfs:
        for uniform in range(pmf.total):
            operations.clear()
            pmf.pick(Counted(uniform))
            seen.add(tuple(sorted(operations.items())))
    assert len(seen) == 1
    assert seen != {()}


@given(st.integers(1, 2**12000), st.integers(0, 2**12000))
def test_long_numbers_are_divided_as_python_does(divisor: int, number: int) -> None:
    bits = divisor.bit_length()
    number %= divisor << bits
    assert _divide(number, divisor, bits) == divmod(number, divisor)
    assert _divide((divisor << bits) - 1, divisor, bits) == divmod((divisor << bits) - 1, divisor)


@given(st.integers(2, 2**50), st.integers(1, 400), st.data())
def test_digits_make_up_the_number(base: int, count: int, data: st.DataObject) -> None:
    number = data.draw(st.integers(0, base**count - 1))
    found = digits(number, base, count)
    assert len(found) == count
    assert max(found) < base
    assert sum(digit * base**place for place, digit in enumerate(found)) == number
