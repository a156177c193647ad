"""The odometer: an immutable fold that can fall."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given

import expost as xp
from expost.loss._realized import basic_loss
from support.random_cases import finite, transcripts


def test_the_history_starts_at_zero_and_can_fall() -> None:
    query = xp.randomized_response(epsilon=1)
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    for response in (1, 1, 0):
        odometer = odometer.add(query, response)
    losses = [loss.upper for loss in odometer.history]
    assert losses == pytest.approx([0, 1, 2, 1])
    assert odometer.spent.upper == pytest.approx(3)
    assert repr(odometer) == "Odometer(3 exchanges)"


@given(transcripts())
def test_folding_at_once_or_step_by_step_is_the_same(transcript: xp.Transcript) -> None:
    stepped = xp.Odometer(xp.Transcript(transcript.domain))
    for exchange in transcript.exchanges:
        stepped = stepped.add(exchange.query, exchange.response)
    whole = xp.Odometer(transcript)
    assert stepped.history == whole.history
    assert stepped.transcript == whole.transcript
    assert np.array_equal(finite(stepped).values, finite(whole).values)


@given(transcripts())
def test_adding_leaves_the_old_odometer_as_it_was(transcript: xp.Transcript) -> None:
    odometer = xp.Odometer(transcript)
    before = finite(odometer).values.copy(), odometer.history
    odometer.add(xp.randomized_response(epsilon=1), 0)
    assert np.array_equal(finite(odometer).values, before[0])
    assert odometer.history == before[1]
    with pytest.raises(ValueError, match="read-only"):
        finite(odometer.add(xp.randomized_response(epsilon=1), 0)).values[0] = 1


@given(transcripts())
def test_a_loss_never_exceeds_the_sum_of_the_epsilons(transcript: xp.Transcript) -> None:
    odometer = xp.Odometer(transcript)
    assert odometer.loss.upper <= odometer.spent.upper
    assert xp.Odometer(transcript).exact_loss <= basic_loss(transcript)
    exact = basic_loss(transcript).enclosure
    assert odometer.spent.lower <= exact.lower
    assert exact.upper <= odometer.spent.upper


def test_memory_is_one_double_per_value_and_the_history() -> None:
    size = 10_000
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet(range(size))))
    query = xp.perturbation(np.linspace(0, 1, size), epsilon=1)
    for _ in range(5):
        odometer = odometer.add(query, 1)
    assert finite(odometer).values.nbytes == 8 * size
    assert len(finite(odometer).tally) == 1


def test_rounding_does_not_lift_a_loss_above_the_sum_of_the_epsilons() -> None:
    query = xp.channel([["1/3", "2/3"], ["2/3", "1/3"]])
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1]))).add(query, 0)
    assert odometer.loss.upper == odometer.spent.upper
    assert finite(odometer).spread.upper > odometer.spent.upper


def test_an_odometer_cannot_be_changed() -> None:
    odometer = xp.Odometer(xp.Transcript(xp.FiniteSet([0, 1])))
    with pytest.raises(AttributeError):
        odometer.history = odometer.basic_history


def test_past_queries_leave_nothing_behind_but_themselves() -> None:
    size = 200_000
    domain = xp.FiniteSet(range(size))
    tracemalloc.start()
    odometer = xp.Odometer(xp.Transcript(domain))
    for step in range(60):
        scores = np.linspace(0, 1, size) ** (1 + step / 10)
        odometer = odometer.add(xp.perturbation(scores, epsilon="0.01"), 1)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One double per value of each query's own scores and of the sum, and the bounded cache.
    assert kept < 8 * size * (60 + 1) + 6 * 8 * (1 << 22)


@pytest.mark.parametrize("domain", [xp.FiniteSet(range(4)), xp.Box(value=(0, 3))])
def test_the_loss_after_so_many_exchanges_is_that_of_the_prefix(
    domain: xp.FiniteSet | xp.Box,
) -> None:
    steps = [xp.Odometer(xp.Transcript(domain))]
    for weight, response in ((1, 1), (-2, 1), (1, 0), (0.5, 0)):
        query = xp.logistic({"value": weight}, intercept=-1, epsilon="0.5")
        steps.append(steps[-1].add(query, response))
    assert [steps[-1].loss_after(count) for count in range(5)] == [step.loss for step in steps]
    assert list(steps[-1].history) == [step.loss for step in steps]
    assert steps[-1].loss_after(0) == xp.numbers.Enclosure(0, 0)


@given(transcripts())
def test_a_prefix_is_the_odometer_of_the_first_exchanges(transcript: xp.Transcript) -> None:
    count = len(transcript) // 2
    prefix, fresh = xp.Odometer(transcript).prefix(count), xp.Odometer(transcript.first(count))
    assert prefix.transcript == fresh.transcript
    assert prefix.history == fresh.history
    assert prefix.basic_history == fresh.basic_history
    assert prefix.exact_spent == fresh.exact_spent
    assert np.array_equal(finite(prefix).values, finite(fresh).values)


def test_what_was_before_the_last_exchange_is_not_added_up_again_one_by_one() -> None:
    query = xp.logistic([1], epsilon="0.1")
    odometer = xp.Odometer(xp.Transcript(xp.Box([(-1, 1)])))
    for response in (1, 0, 1):
        odometer = odometer.add(query, response)
    with mock.patch.object(xp.Odometer, "_absorb", side_effect=AssertionError):
        before, last = odometer.without_last()
    assert last == query
    assert len(before) == 2
    assert before.loss.upper < 0.01 < odometer.loss.upper
    assert before.spent == odometer.basic_history[2]
