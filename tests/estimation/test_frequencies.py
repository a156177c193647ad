"""Frequencies of values: right on average, with the right variance, for whole groups."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.estimation.frequencies import decoder_for
from expost.queries import Query
from expost.sampling import draw

SIZE = 3
DOMAIN = xp.FiniteSet(range(SIZE))
FAMILIES: list[Query] = [
    xp.randomized_response(epsilon=1),
    xp.unary_encoding(epsilon=2),
    xp.subset_selection(size=2, epsilon=1),
    xp.hadamard_response(order=4, epsilon=1),
    xp.channel([["1/2", "1/4", "1/4"], ["1/8", "3/4", "1/8"], [0, "1/3", "2/3"]]),
    xp.geometric(range=(0, 2), sensitivity=2, epsilon=2),
    xp.exponential_mechanism([[2, 1, 0], [1, 2, 1], [0, 1, 2]], sensitivity=2, epsilon=3),
]


def answers_of(queries: dict[str, Query], positions: list[list[tuple[str, int]]]) -> xp.Answers:
    """A list per subject, of queries and the positions of responses."""
    rows = [
        (i, key, position)
        for i, responses_of_subject in enumerate(positions)
        for key, position in responses_of_subject
    ]
    responses = [queries[key].on(DOMAIN).responses[position] for _, key, position in rows]
    table = {
        "subject": [i for i, _, _ in rows],
        "query": [key for _, key, _ in rows],
        "response": responses,
    }
    return xp.Answers(DOMAIN, queries, table)


def chance(query: Query, value: int, position: int) -> Fraction:
    return query.on(DOMAIN).pmf(value).probability(position)


@pytest.mark.parametrize("query", FAMILIES, ids=lambda query: str(query.kind))
def test_over_all_responses_of_a_group_mean_and_variance_are_right(query: Query) -> None:
    group = [0, 2]
    truth = np.array([0.5, 0.0, 0.5])
    mean, square = np.zeros(SIZE), np.zeros(SIZE)
    for positions in itertools.product(range(len(query.on(DOMAIN).responses)), repeat=len(group)):
        p = float(math.prod(chance(query, x, y) for x, y in zip(group, positions, strict=True)))
        if p:
            estimate = xp.estimation.estimate_frequencies(
                answers_of({"q": query}, [[("q", y)] for y in positions])
            )
            mean += p * estimate.frequency
            square += p * (estimate.frequency - truth) ** 2
    assert mean == pytest.approx(truth, abs=1e-9)
    noise = decoder_for(query.on(DOMAIN)).variance
    other = np.broadcast_to(noise.other, (SIZE, SIZE))
    true = np.broadcast_to(noise.true, SIZE)
    expected = [
        sum(true[j] if j == x else other[j, x] for x in group) / len(group) ** 2
        for j in range(SIZE)
    ]
    assert square == pytest.approx(np.array(expected), rel=1e-9)


def test_subjects_with_several_queries_are_averaged_without_bias_and_by_their_noise() -> None:
    queries: dict[str, Query] = {
        "loud": xp.randomized_response(epsilon="0.2"),
        "clear": xp.randomized_response(epsilon=3),
    }
    mean, square, values = np.zeros(SIZE), np.zeros(SIZE), [0, 1]
    truth = np.array([0.5, 0.5, 0.0])
    for first in itertools.product(range(SIZE), repeat=2):
        for second in range(SIZE):
            p = float(
                chance(queries["loud"], 0, first[0])
                * chance(queries["clear"], 0, first[1])
                * chance(queries["clear"], 1, second)
            )
            responses_of_subject = [[("loud", first[0]), ("clear", first[1])], [("clear", second)]]
            estimate = xp.estimation.estimate_frequencies(answers_of(queries, responses_of_subject))
            mean += p * estimate.frequency
            square += p * (estimate.frequency - truth) ** 2
    assert mean == pytest.approx(truth, abs=1e-9)
    # The loud response hardly adds to the clear one, and does not take from it.
    noise = decoder_for(queries["clear"].on(DOMAIN)).variance
    alone = [
        sum(float(noise.true if j == x else noise.other) for x in values) / 4 for j in range(3)
    ]
    assert (square <= np.array(alone) * (1 + 1e-9)).all()
    assert (square >= np.array(alone) * 0.9).all()


@pytest.mark.parametrize("query", FAMILIES, ids=lambda query: str(query.kind))
def test_the_standard_error_is_that_of_subjects_drawn_at_random(query: Query) -> None:
    prior = np.array([0.2, 0.5, 0.3])
    likelihood = query.on(DOMAIN)
    read = decoder_for(likelihood)
    chances = [
        float(sum(Fraction(p) * chance(query, x, y) for x, p in enumerate(prior.tolist())))
        for y in range(len(likelihood.responses))
    ]
    decoded = np.array([read.decode(y) for y in range(len(chances))])
    variance = np.array(chances) @ decoded**2 - prior**2
    # In numbers that are near those expected the estimate is near the prior.
    subjects = 200_000
    counts = np.rint(np.array(chances) * subjects).astype(int)
    pairs = [
        (query, likelihood.responses[y]) for y, count in enumerate(counts) for _ in range(count)
    ]
    estimate = xp.estimation.estimate_frequencies(pairs, domain=DOMAIN)
    assert estimate.frequency == pytest.approx(prior, abs=1e-3)
    assert estimate.standard_error**2 * len(pairs) == pytest.approx(variance, rel=1e-2)
    binomial = prior * (1 - prior)
    assert estimate.noise_error**2 * len(pairs) == pytest.approx(variance - binomial, rel=1e-2)
    assert ((estimate.lower < prior) & (prior < estimate.upper)).all()


def hashed(subjects: int, values: np.ndarray[Any, Any], seeds: int) -> list[tuple[Query, Any]]:
    source = xp.sampling.InsecureSource(5)
    queries = [xp.local_hashing(seed=f"{s:08x}", buckets=4, epsilon=1) for s in range(seeds)]
    pairs: list[tuple[Query, Any]] = []
    for i in range(subjects):
        query = queries[i % seeds]
        pairs.append((query, draw(query.on(DOMAIN).pmf(int(values[i])), source)))
    return pairs


def test_local_hashing_with_seeds_of_their_own() -> None:
    values = np.repeat([0, 1, 2], [600, 1300, 100])
    estimate = xp.estimation.estimate_frequencies(hashed(2000, values, seeds=2000), domain=DOMAIN)
    truth = np.array([0.3, 0.65, 0.05])
    assert (np.abs(estimate.frequency - truth) < 4 * estimate.noise_error).all()
    p = math.e / (math.e + 3)
    other, true = 0.25 * 0.75 / (p - 0.25) ** 2, p * (1 - p) / (p - 0.25) ** 2
    shares = np.clip(estimate.frequency, 0, 1)
    expected = np.sqrt((shares * true + (1 - shares) * other) / 2000)
    assert estimate.noise_error == pytest.approx(expected, rel=1e-6)


def test_seeds_that_subjects_share_make_the_errors_larger() -> None:
    values = np.repeat([0, 1, 2], [600, 1300, 100])
    separate = xp.estimation.estimate_frequencies(hashed(2000, values, seeds=2000), domain=DOMAIN)
    shared = xp.estimation.estimate_frequencies(hashed(2000, values, seeds=5), domain=DOMAIN)
    assert (shared.noise_error > 3 * separate.noise_error).all()
    # At worst the collisions of a seed are those of all its subjects: 1/3 over five seeds.
    assert shared.noise_error.max() <= math.sqrt(1 / 3 / 5) + separate.noise_error.max()


def test_pairs_and_answers_give_the_same() -> None:
    query = xp.randomized_response(epsilon=1)
    responses = [0, 1, 1, 2, 0, 0]
    pairs = [(query, response) for response in responses]
    table = {"subject": list("abcdef"), "query": ["q"] * 6, "response": responses}
    first = xp.estimation.estimate_frequencies(pairs, domain=DOMAIN)
    second = xp.estimation.estimate_frequencies(xp.Answers(DOMAIN, {"q": query}, table))
    assert {name: list(column) for name, column in first.columns().items()} == {
        name: list(column) for name, column in second.columns().items()
    }
    assert first.columns()["value"] == [0, 1, 2]
    assert repr(first).startswith("Frequencies(3 values, 6 subjects)\nvalue  frequency")


def test_without_noise_it_counts() -> None:
    query = xp.channel([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    estimate = xp.estimation.estimate_frequencies([(query, 0)] * 3 + [(query, 2)], domain=DOMAIN)
    assert estimate.frequency == pytest.approx([0.75, 0, 0.25])
    assert estimate.noise_error == pytest.approx(0, abs=1e-6)
    assert estimate.standard_error == pytest.approx(
        np.sqrt(np.array([3 / 16, 4 / 25, 3 / 16]) / 4), abs=1e-6
    )
    assert estimate.lower[1] == pytest.approx(0, abs=1e-9)
    assert estimate.upper[1] == pytest.approx(3.8415 / (4 + 3.8415), abs=1e-4)


@pytest.mark.parametrize("query", FAMILIES, ids=lambda query: str(query.kind))
def test_one_subject_or_equal_responses_have_intervals_too(query: Query) -> None:
    for count in (1, 50):
        for response in query.on(DOMAIN).responses[:8]:
            estimate = xp.estimation.estimate_frequencies(
                [(query, response)] * count, domain=DOMAIN
            )
            assert (
                (estimate.lower >= 0) & (estimate.lower <= estimate.upper) & (estimate.upper <= 1)
            ).all()
            assert np.isfinite(estimate.standard_error).all()
            if count == 1:
                assert (estimate.upper - estimate.lower).max() > 0.5


def test_a_domain_of_one_value_has_a_frequency_of_one() -> None:
    query = xp.randomized_response(epsilon=1)
    estimate = xp.estimation.estimate_frequencies(
        [(query, "only")] * 3, domain=xp.FiniteSet(["only"])
    )
    assert estimate.frequency.tolist() == [1.0]


RANDOMIZED = xp.randomized_response(epsilon=1)


@pytest.mark.parametrize(
    ("answers", "options", "reason"),
    [
        ([], {"domain": DOMAIN}, "answers: must not be empty"),
        (None, {"domain": DOMAIN}, "answers: must be Answers(domain, queries, table), or pairs"),
        ([0, 1], {"domain": DOMAIN}, "answers: must be Answers"),
        ([(0, 1)], {"domain": DOMAIN}, "answers: must be Answers"),
        ([(RANDOMIZED, 1, 2)], {"domain": DOMAIN}, "answers: must be Answers"),
        (
            [(RANDOMIZED, 1)],
            {},
            "domain: must be a FiniteSet, Attributes or a Box, for pairs do not say",
        ),
        ([(RANDOMIZED, 7)], {"domain": DOMAIN}, "row 1: response: 7 is not a response"),
        ([(RANDOMIZED, 1)], {"domain": DOMAIN, "confidence": 1}, "confidence: must be between"),
        (
            [(xp.perturbation([0, 1, 1], epsilon=1), 1)],
            {"domain": DOMAIN},
            "queries.0: has 2 responses: 3 values cannot be told apart by one response",
        ),
        (
            [(xp.randomized_response(epsilon="1e-200"), 0)],
            {"domain": DOMAIN},
            "queries.0.epsilon: is too small for an estimate in doubles",
        ),
        (
            [(xp.linear({"x": 1}, epsilon=1), 0)],
            {"domain": xp.Box(x=(0, 1))},
            "domain: must be a finite set",
        ),
    ],
)
def test_bad_input_gets_one_clear_line(answers: Any, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        xp.estimation.estimate_frequencies(answers, **options)
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("query", [FAMILIES[0], FAMILIES[1]], ids=lambda query: str(query.kind))
def test_the_interval_is_wilsons_for_the_chance_of_being_spoken_for(query: Query) -> None:
    likelihood = query.on(DOMAIN)
    # Both the value 0 and a text of bits that starts with a one speak for the value 0.
    first = "1" if query.kind == "unary_encoding" else "0"
    speaking = [str(response)[0] == first for response in likelihood.responses]
    positions = [y for y, speaks in enumerate(speaking) if speaks]
    p, q = (float(sum(chance(query, x, y) for y in positions)) for x in (0, 1))
    generator = np.random.default_rng(6)
    for subjects in (100, 180):
        responses_of_subject = generator.integers(0, len(likelihood.responses), subjects).tolist()
        pairs = [(query, likelihood.responses[y]) for y in responses_of_subject]
        estimate = xp.estimation.estimate_frequencies(pairs, domain=DOMAIN)
        share, z = float(np.mean([speaking[y] for y in responses_of_subject])), 1.959963984540054
        middle = (share + z**2 / (2 * subjects)) / (1 + z**2 / subjects)
        half = math.sqrt(share * (1 - share) / subjects + z**2 / (4 * subjects**2))
        ends = [middle + sign * half * z / (1 + z**2 / subjects) for sign in (-1, 1)]
        expected = [min(1.0, max(0.0, (end - q) / (p - q))) for end in ends]
        assert [estimate.lower[0], estimate.upper[0]] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("subjects", [1, 4, 20])
@pytest.mark.parametrize("epsilon", [1, 8])
def test_intervals_of_few_subjects_cover_whatever_the_share_is(subjects: int, epsilon: int) -> None:
    query, domain = xp.randomized_response(epsilon=epsilon), xp.FiniteSet(["no", "yes"])
    ends = []
    for count in range(subjects + 1):
        pairs = [(query, "yes")] * count + [(query, "no")] * (subjects - count)
        found = xp.estimation.estimate_frequencies(pairs, domain=domain)
        ends.append((found.lower[1], found.upper[1]))
    true_rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    for share in np.linspace(0, 1, 97):
        rate = share * true_rate + (1 - share) * (1 - true_rate)
        covered = sum(
            math.comb(subjects, count) * rate**count * (1 - rate) ** (subjects - count)
            for count, (lower, upper) in enumerate(ends)
            if lower <= share <= upper
        )
        assert covered >= 0.95 - 1e-9


def test_a_share_that_no_response_contradicts_has_an_error() -> None:
    query, domain = xp.randomized_response(epsilon=8), xp.FiniteSet(["no", "yes"])
    errors = [
        xp.estimation.estimate_frequencies([(query, "yes")] * n, domain=domain).standard_error[1]
        for n in (1, 5, 50)
    ]
    assert 0.5 <= errors[0] < 0.51
    assert errors[0] > errors[1] > errors[2]
