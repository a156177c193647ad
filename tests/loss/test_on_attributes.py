"""ℓ over records, against all records listed."""

from __future__ import annotations

import random

import pytest

import expost as xp
from expost.loss import _exponents
from expost.loss._components import Marginals
from expost.loss._exponents import Products
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.loss._sweeps import CountedChanges
from expost.queries import Query
from support.record_cases import find_contradictions, random_query, random_record_case


@pytest.mark.parametrize("block", range(4))
def test_losses_and_decisions_are_those_of_all_records_listed(block: int) -> None:
    for seed in range(250 * block, 250 * block + 250):
        assert find_contradictions(random_record_case(random.Random(seed))) == [], seed


def caught() -> bool:
    """Whether the oracle complains of any of some cases."""
    return any(find_contradictions(random_record_case(random.Random(seed))) for seed in range(60))


def test_adding_epsilon_to_the_loss_in_place_of_the_worst_case_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        AttributesLogLikelihood, "worst_after", AttributesLogLikelihood.plus_epsilon
    )
    assert caught()


def test_one_marginal_in_place_of_two_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Marginals, "lows", property(lambda marginals: marginals.highs))
    assert caught()


def test_changes_that_are_not_limited_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountedChanges, "apply", lambda move, sums: sums)  # as if nothing changed
    assert caught()


def test_what_doubles_cannot_tell_apart_and_is_not_compared_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Products, "best", lambda products, numbers, sign: min(numbers))
    assert caught()


def test_exponents_that_do_not_fit_into_one_integer_are_compared_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_exponents, "_WORD", 4)
    assert not caught()


GUARDS: tuple[xp.filters.Filter, ...] = (
    xp.BasicFilter(epsilon="2"),
    xp.SimplifiedFilter(epsilon="1.5"),
    xp.BayesianFilter(epsilon="1"),
    xp.BayesianFilter(ratio=3),
    xp.ApproximateFilter(epsilon="2", delta="1e-6", inner=xp.filters.Rogers()),
    xp.filters.CompositionFilter(epsilon="2", delta="1e-6", rule=xp.filters.Renyi(order="12")),
)


def same(one: xp.Transcript, other: xp.Transcript, asked: tuple[Query, Query]) -> None:
    """Two transcripts that say the same have the same exact loss, and get the same decisions."""
    first, second = xp.Odometer(one), xp.Odometer(other)
    assert first.exact_loss == second.exact_loss
    for filter_ in GUARDS:
        decisions = [filter_.decide(*pair) for pair in zip((first, second), asked, strict=True)]
        assert decisions[0].accepted == decisions[1].accepted
        assert not any(decision.undecided for decision in decisions)


@pytest.mark.parametrize("kind", ["one attribute", "no change", "changes at every step"])
def test_what_is_the_same_domain_is_accounted_for_the_same(kind: str) -> None:
    for seed in range(60):
        generator = random.Random(seed)
        size = generator.randint(2, 4)
        values, steps = list(range(size)), (1, 2, 4)
        attribute = {
            "one attribute": values,
            "no change": xp.changing(values, times=0),
            "changes at every step": xp.changing(values),
        }[kind]
        ours = xp.Transcript(xp.Attributes(x=attribute))
        apart = kind == "changes at every step"
        plain = xp.Transcript(
            xp.Attributes({f"x{step}": values for step in steps}) if apart else xp.FiniteSet(values)
        )
        for number in range(generator.randint(1, 9)):
            query, step = random_query(generator, size, numeric=True), generator.choice(steps)
            about = query.about("x", at=None if kind == "one attribute" else step)
            other = query.about(f"x{step}") if apart else query
            same(ours, plain, (about, other))
            responses = query.on(xp.FiniteSet(values)).responses
            place = generator.randrange(min(64, len(responses)))
            ours, plain = ours.add_position(about, place), plain.add_position(other, place)
            assert len(ours) == number + 1
