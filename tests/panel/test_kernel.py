"""Many subjects in arrays decide as one subject at a time does, ties included."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.filters import Account, Filter, PureFilter, WorstCase
from expost.filters.rules import Declared, Renyi, Rogers, Sums, Whitehouse
from expost.panel._compiled_query import CompiledFiniteQuery
from expost.panel._finite_state import FiniteState
from expost.panel._kernel import Kernel
from expost.panel._selection import Selection
from expost.queries import Query
from support import oracles, panel_cases


@pytest.mark.parametrize(
    ("guard", "subjects"),
    [
        (xp.BayesianFilter("0.6"), 1000),
        (xp.SimplifiedFilter("0.8"), 150),
        (xp.BasicFilter("0.6"), 150),
        (xp.BasicFilter(ratio="9/5"), 100),
        (xp.BayesianFilter(ratio="9/4"), 100),
        (xp.ApproximateFilter("0.6", delta="1e-6"), 20),
        *(
            (xp.filters.CompositionFilter("0.8", delta="1e-4", rule=rule), 12)
            for rule in (
                Sums(),
                Renyi(8),
                Rogers(),
                Whitehouse(delta_prime="1e-5"),
                Declared({"0.1": 4, "0.2": 3}),
            )
        ),
    ],
    ids=repr,
)
def test_every_decision_is_that_of_the_subject_alone(guard: Filter, subjects: int) -> None:
    panel_cases.play(guard, subjects, seed=subjects)


def test_decisions_are_those_of_exact_fractions() -> None:
    generator = random.Random(5)
    domain = xp.FiniteSet(range(3))
    short = ("randomized_response", "local_hashing", "perturbation", "channel")
    queries = [query for query in panel_cases.families(3, "0.2") if query.kind in short]
    kernel = Kernel(domain, xp.BayesianFilter("0.6"))
    numbers = [kernel.query_index(query) for query in queries]
    state = kernel.start(20)
    ratios = [[Fraction(1)] * 3 for _ in range(20)]
    for _ in range(8):
        asked = np.array([generator.choice(numbers) for _ in range(20)])
        found = kernel.decide(state, asked)
        answered = np.empty(20, dtype=np.int64)
        for place, number in enumerate(asked.tolist()):
            likelihood = kernel.registry[number].query.on(domain)
            columns = [
                [likelihood.pmf(x).probability(y) for x in range(3)]
                for y in range(len(likelihood.responses))
            ]
            accepted = oracles.bayesian_accepts(
                ratios[place], columns, epsilon=Fraction("0.6"), limit=None
            )
            assert found.accepted[place] == accepted
            answered[place] = generator.randrange(len(likelihood.responses))
            if found.accepted[place]:
                for x in range(3):
                    ratios[place][x] *= columns[answered[place]][x]
        those = np.flatnonzero(found.accepted)
        kernel.fold(state, asked[those], answered[those], those)


@pytest.mark.parametrize("guard", [xp.BayesianFilter("0.3"), xp.SimplifiedFilter("0.3")], ids=repr)
def test_ties_that_doubles_cannot_tell_are_told_in_words(guard: Filter) -> None:
    # After so many responses that cancel, doubles are off by more than weights are rounded. What
    # remains is a difference of 0.2, also of sums with other weights, each rounded in its own way.
    domain = xp.FiniteSet(range(3))
    tenth, half, two = (xp.randomized_response(epsilon) for epsilon in ("0.1", "0.05", "0.2"))
    last = {
        "for one": [(tenth, 1), (half, 1), (half, 1)],
        "for three": [(two, 1), (two, 1), (tenth, 0), (half, 0), (half, 0), (two, 2)],
        "otherwise": [*[(half, 0)] * 4, (two, 0), (two, 1), (tenth, 2), (tenth, 2)],
        "below": [(tenth, 1), (half, 1)],
    }
    kernel = Kernel(domain, guard)
    state = kernel.start(len(last))
    before = [(each, value) for each in (tenth, half, two) for value in range(3)] * 60
    for each, value in before:
        kernel.fold(state, kernel.query_index(each), np.full(len(last), value))
    for place, exchanges in enumerate(last.values()):
        for each, value in exchanges:
            kernel.fold(state, kernel.query_index(each), np.array([value]), np.array([place]))
    found = kernel.decide(state, kernel.query_index(tenth))
    limit = guard.budget.enclosure.upper
    assert (found.lower <= limit).all()
    assert (found.upper[:3] > limit).all(), "no ties"
    # No rationals were needed: all that is close is on one side in words.
    assert isinstance(state, FiniteState)
    question = kernel.registry[kernel.query_index(tenth)]
    assert isinstance(question, CompiledFiniteQuery)
    simply = guard.kind == "simplified"
    compared = state.compare(question, simply, np.arange(3), guard.budget)
    assert (compared.within ^ compared.above).all()
    for place, exchanges in enumerate(last.values()):
        transcript = xp.Transcript(domain)
        for each, value in before + exchanges:
            transcript = transcript.add_position(each, value)
        alone = guard.decide(xp.Odometer(transcript), tenth)
        assert alone.accepted == found.accepted[place]


def test_losses_and_peaks_enclose_the_exact_ones() -> None:
    _, state, odometers = panel_cases.play(xp.BayesianFilter("0.8"), 60, seed=3)
    everybody = Selection(state.count)
    for (lower, upper), exact in (
        (state.losses(everybody), [each.exact_loss for each in odometers]),
        (
            state.peaks(everybody),
            [max(each.exact_loss_after(n) for n in range(len(each) + 1)) for each in odometers],
        ),
    ):
        for low, high, loss in zip(lower.tolist(), upper.tolist(), exact, strict=True):
            assert xp.numbers.Nats(Fraction(low)) <= loss <= xp.numbers.Nats(Fraction(high))
            assert high - low < 1e-12


def test_what_rules_a_value_out_is_an_infinite_loss() -> None:
    domain, guard = xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(1)
    certain = xp.channel([["1/2", "1/2"], ["1/4", "3/4"], ["0", "1"]][::2])
    kernel = Kernel(domain, guard)
    number = kernel.query_index(certain)
    state = kernel.start(3)
    assert not kernel.decide(state, number).accepted.any()
    kernel.fold(state, number, np.array([0, 1]), np.array([0, 2]))
    lower, upper = state.losses(Selection(3))
    assert (lower[0], upper[0], upper[1]) == (np.inf, np.inf, 0)
    assert lower[2] <= mpmath.log(2) <= upper[2]
    weak = kernel.query_index(xp.randomized_response("0.1"))
    assert kernel.decide(state, weak).accepted.tolist() == [False, True, True]


def test_a_query_that_needs_a_delta_is_refused_without_one() -> None:
    kernel = Kernel(xp.FiniteSet([0, 1]), xp.BayesianFilter(50))
    noisy = xp.gaussian({"value": 1}, range=(0, 1), sigma="1", grid="0.5")
    assert not kernel.decide(kernel.start(2), kernel.query_index(noisy)).accepted.any()


class Half(Filter):
    """A filter of one's own, which knows nothing of arrays."""

    kind = "half"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.worst_after(query, 2 * times, self.budget)


class Twice(xp.BasicFilter):
    """A filter that counts otherwise than the one that it extends."""

    kind = "twice"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return super().worst_case(account, query, 2 * times)


@pytest.mark.parametrize("guard", [Half("0.8"), Twice("0.8")], ids=repr)
def test_a_filter_of_ones_own_decides_about_many(guard: Filter) -> None:
    panel_cases.play(guard, 10, seed=2)


class TwiceAtLevel(PureFilter):
    """A filter of one's own at a level."""

    kind = "twice at a level"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.at_level(self.protects).worst_after(query, 2 * times, self.budget)


@pytest.mark.parametrize("several", [False, True])
def test_a_filter_of_ones_own_at_a_level_decides_about_many(several: bool) -> None:
    guard: Filter = TwiceAtLevel("0.5", protects=xp.steps(1))
    guard = xp.AllOf(guard, xp.BayesianFilter(9)) if several else guard
    record = xp.Attributes(smokes=xp.changing(["no", "yes"]))
    kernel = Kernel(record, guard)
    half, quarter = (
        kernel.query_index(xp.randomized_response(epsilon).about("smokes", at=1))
        for epsilon in ("0.5", "0.25")
    )
    state = kernel.start(2)
    assert kernel.decide(state, half).accepted.tolist() == [False, False]
    kernel.fold(state, quarter, np.array([1]), np.array([1]))
    assert kernel.decide(state, quarter).accepted.tolist() == [True, False]


@pytest.mark.parametrize(
    "guard", [xp.BayesianFilter(ratio=9), xp.SimplifiedFilter(ratio=9)], ids=repr
)
def test_ties_in_earnest_are_decided_by_exact_products(guard: Filter) -> None:
    # A budget of ln 9, and responses of ln 3 each: many are at it, to all digits.
    domain = xp.FiniteSet(range(3))
    direct = xp.channel([["3/5", "1/5", "1/5"], ["1/5", "3/5", "1/5"], ["1/5", "1/5", "3/5"]])
    pairs = xp.channel([["1/2", "1/2"], ["1/4", "3/4"], ["1/2", "1/2"]])
    kernel, state, _ = panel_cases.play_on(domain, [direct, pairs], guard, 60, seed=1, rounds=8)
    assert isinstance(state, FiniteState)
    question = kernel.registry[kernel.query_index(direct)]
    assert isinstance(question, CompiledFiniteQuery)
    compared = state.compare(question, False, np.arange(60), guard.budget)
    assert (compared.within ^ compared.above).all()
    found = kernel.decide(state, kernel.query_index(direct))
    limit = guard.budget.enclosure
    assert ((found.lower <= limit.upper) & (found.upper > limit.lower)).sum() >= 3
