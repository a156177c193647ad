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
from expost.queries import Query
from expost.sampling import Categorical, InsecureSource, Pmf, Spiked, SystemSource, draw
from strategies import queries


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
    totals = set()
    for value in range(size):
        pmf = likelihood.pmf(value)
        totals.add(pmf.total)
        for position in range(len(likelihood.responses)):
            weight = int(likelihood.weights(position)[value])
            assert pmf.probability(position) == Fraction(weight, pmf.total)
    assert len(totals) == 1


class Spy:
    """Records what is asked of the source of randomness."""

    def __init__(self) -> None:
        self.limits: list[int] = []

    def below(self, limit: int) -> int:
        self.limits.append(limit)
        return limit // 2


@pytest.mark.parametrize(
    "query",
    [
        xp.randomized_response(epsilon="0.7"),
        xp.perturbation([0, 0.1, 0.7, 1], epsilon=1),
        xp.channel([["1/3", "2/3"], ["1/7", "6/7"], ["1/2", "1/2"], ["0", "1"]]),
    ],
)
def test_every_secret_asks_for_the_same_randomness(query: Query) -> None:
    domain = xp.FiniteSet(list("abcd"))
    asked = set()
    for value in range(4):
        spy = Spy()
        draw(query.on(domain).pmf(value), spy)
        asked.add(tuple(spy.limits))
    assert len(asked) == 1
    assert len(asked.pop()) == 1


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


for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__sub__", "__floordiv__"):
    setattr(Counted, _name, _counted(_name))


@pytest.mark.parametrize(
    "pmfs",
    [
        [Categorical((1, 2, 3, 4)), Categorical((4, 3, 2, 1)), Categorical((0, 10, 0, 0))],
        [Spiked(6, spike, 5, 2) for spike in range(6)],
    ],
    ids=["categorical", "spiked"],
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
