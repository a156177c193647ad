"""Distributions of groups: likeliest ones from any mixture of transcripts, also under a filter."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import expost as xp
from expost.queries import Query

DOMAIN = xp.FiniteSet(range(3))
RANDOMIZED = xp.randomized_response(epsilon=1)
SCORES = [0, 0.5, 1]
ONE_BIT = xp.perturbation(SCORES, epsilon="0.5")


def test_inside_the_simplex_it_is_the_unbiased_estimate() -> None:
    pairs = [(RANDOMIZED, y) for y, count in enumerate([40, 35, 25]) for _ in range(count)]
    estimate = xp.estimation.estimate_distribution(pairs, domain=DOMAIN)
    frequencies = xp.estimation.estimate_frequencies(pairs, domain=DOMAIN)
    assert (frequencies.frequency > 0).all()
    assert estimate.probabilities == pytest.approx(frequencies.frequency, abs=1e-5)
    assert estimate.gap <= 1e-6
    assert estimate.identified.all()
    assert repr(estimate).startswith("Distribution(3 values, 100 subjects)\nvalue  probability")


def test_the_likelihood_is_that_of_the_transcripts() -> None:
    queries: dict[str, Query] = {
        "r": RANDOMIZED,
        "u": xp.unary_encoding(epsilon=2),
        "h": xp.local_hashing(seed="01", buckets=2, epsilon=1),
        "b": ONE_BIT,
        "g": xp.geometric(range=(0, 2), sensitivity=2, epsilon=1),
    }
    table = {
        "subject": ["a", "b", "a", "b", "c", "c", "d"],
        "query": ["r", "u", "h", "b", "g", "b", "r"],
        "response": ["0", "010", "1", "1", "2", "0", "2"],
    }
    answers = xp.Answers(DOMAIN, queries, table)
    estimate = xp.estimation.estimate_distribution(answers, gap=1e-9)
    rows = []
    for subject in answers.subjects:
        row = np.ones(3)
        for exchange in answers.transcript(subject).exchanges:
            likelihood = exchange.query.on(DOMAIN)
            position = likelihood.position(exchange.response)
            assert position is not None
            row *= [float(likelihood.pmf(x).probability(position)) for x in range(3)]
        rows.append(row)
    # Where it is largest, no value has a slope above the number of subjects.
    mixed = np.array(rows) @ estimate.probabilities
    slopes = (np.array(rows) / mixed[:, None]).sum(axis=0)
    assert slopes.max() <= 4 + 1e-6
    assert slopes @ estimate.probabilities == pytest.approx(4)


def test_order_and_names_of_subjects_do_not_matter() -> None:
    table = {"subject": [1, 1, 2, 2], "query": ["q"] * 4, "response": [0, 1, 1, 0]}
    other = {"subject": list("xyyx"), "query": ["q"] * 4, "response": [1, 0, 1, 0]}
    first, second = (
        xp.estimation.estimate_distribution(xp.Answers(DOMAIN, {"q": RANDOMIZED}, t))
        for t in (table, other)
    )
    assert first.probabilities.tolist() == second.probabilities.tolist()


def test_one_subject_or_equal_responses_point_at_one_value() -> None:
    for count in (1, 1000):
        estimate = xp.estimation.estimate_distribution([(RANDOMIZED, 1)] * count, domain=DOMAIN)
        assert estimate.probabilities == pytest.approx([0, 1, 0], abs=1e-6)
        assert estimate.gap <= 1e-6
    assert estimate.identified.all()
    with pytest.warns(UserWarning, match="3 of 3 estimates are at an end") as caught:
        ends = estimate.intervals(repetitions=50)
    assert caught[0].filename == __file__
    assert ends.doubts == (str(caught[0].message),)
    assert "too narrow" in repr(ends)
    assert ends.upper == pytest.approx([0, 1, 0], abs=1e-5)


def test_an_estimate_is_inside_its_interval_though_resampled_ones_are_searched_less_closely() -> (
    None
):
    domain, query = xp.FiniteSet(["never", "often"]), xp.randomized_response(epsilon=1)
    estimate = xp.estimation.estimate_distribution([(query, "never")] * 3, domain=domain)
    for scores in (None, [0, 10]):
        with pytest.warns(UserWarning, match="too narrow"):
            ends = estimate.intervals(scores, repetitions=200)
        assert (ends.lower <= ends.estimate).all()
        assert (ends.estimate <= ends.upper).all()
    # What is the same for every value is certain, and not too narrow.
    assert estimate.intervals([2, 2], repetitions=50).doubts == ()


def test_responses_that_say_nothing_leave_all_values_alike() -> None:
    silent = xp.channel([[1, 0], [1, 0], [1, 0]])
    estimate = xp.estimation.estimate_distribution([(silent, 0)] * 5, domain=DOMAIN)
    assert estimate.probabilities == pytest.approx(np.full(3, 1 / 3))
    assert not estimate.identified.any()


@pytest.mark.parametrize("epsilon", ["1e-6", "1e-300"])
def test_hardly_any_epsilon_tells_nothing(epsilon: str) -> None:
    for query, response in [
        (xp.randomized_response(epsilon=epsilon), 1),
        (xp.unary_encoding(epsilon=epsilon), "010"),
    ]:
        estimate = xp.estimation.estimate_distribution([(query, response)] * 9, domain=DOMAIN)
        assert not estimate.identified.any()
        assert estimate.intervals(repetitions=50).upper.tolist() == [1, 1, 1]


def test_what_responses_do_not_tell_is_said() -> None:
    pairs = [(ONE_BIT, 1)] * 60 + [(ONE_BIT, 0)] * 40
    estimate = xp.estimation.estimate_distribution(pairs, domain=DOMAIN)
    # One bit tells the mean of the scores and nothing else.
    assert not estimate.identified.any()
    assert estimate.mean(SCORES) == pytest.approx(
        xp.estimation.estimate_mean([y for _, y in pairs], ONE_BIT, domain=DOMAIN).mean, abs=1e-4
    )
    wide = estimate.intervals(repetitions=50)
    assert wide.lower.tolist() == [0, 0, 0]
    assert wide.upper.tolist() == [1, 1, 1]
    caught = estimate.intervals(SCORES, repetitions=200)
    assert 0.4 < caught.lower[0] < estimate.mean(SCORES) < caught.upper[0] <= 1
    # Some other score is not told.
    assert estimate.intervals([1, 0, 0], repetitions=50).upper.tolist() == [1]


def test_values_that_are_alike_share_their_sum_equally() -> None:
    domain = xp.FiniteSet(["a", "b", "c", "d"])
    query = xp.channel([[0.7, 0.3], [0.2, 0.8], [0.2, 0.8], [0.2, 0.8]])
    estimate = xp.estimation.estimate_distribution(
        [(query, 0)] * 40 + [(query, 1)] * 60, domain=domain
    )
    assert estimate.alike.tolist() == [0, 1, 1, 1]
    assert estimate.probabilities[0] == pytest.approx(0.4, abs=1e-4)
    assert len(set(estimate.probabilities[1:].tolist())) == 1
    assert estimate.probabilities.sum() == pytest.approx(1)
    assert estimate.identified.tolist() == [True, False, False, False]
    ends = estimate.intervals(repetitions=50)
    assert ends.upper[0] < 0.8
    assert ends.upper[1:].tolist() == [1, 1, 1]
    assert estimate.intervals([0, 1, 1, 1], repetitions=50).lower[0] > 0.2


def test_responses_that_nobody_gave_do_not_share_a_sum() -> None:
    # Nobody answered 0 or 2 to the first query, and the second one does not tell them apart.
    is_one = xp.channel([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]])
    pairs = [(RANDOMIZED, 1), *[(is_one, 0)] * 9]
    estimate = xp.estimation.estimate_distribution(pairs, domain=DOMAIN)
    assert estimate.probabilities[0] == estimate.probabilities[2] > 0.1
    assert estimate.identified.tolist() == [False, True, False]


def test_many_values_and_few_queries_do_not_stall() -> None:
    generator = np.random.default_rng(3)
    points = [(x, y) for x in range(12) for y in range(12)]
    domain = xp.FiniteSet(range(144))
    queries: dict[str, Query] = {
        str(index): xp.perturbation([a * x + b * y for x, y in points], epsilon=1, range=(0, 66))
        for index, (a, b) in enumerate([(1, 5), (3, 3), (6, 0)])
    }
    table = {
        "subject": np.repeat(np.arange(100), 3),
        "query": ["0", "1", "2"] * 100,
        "response": [66 * int(bit) for bit in generator.integers(0, 2, 300)],
    }
    caught: list[float] = []
    answers = xp.Answers(domain, queries, table)
    estimate = xp.estimation.estimate_distribution(
        answers, progress=lambda step, gap: caught.append(gap)
    )
    assert estimate.gap <= 1e-6
    assert estimate.steps <= 30
    assert len(caught) == estimate.steps + 1


def test_it_can_be_interrupted() -> None:
    def stop(step: int, gap: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xp.estimation.estimate_distribution([(RANDOMIZED, 1)], domain=DOMAIN, progress=stop)


def test_several_bits_of_a_subject_tell_more() -> None:
    generator = np.random.default_rng(1)
    high = generator.integers(0, 2, (50, 6))
    table = {"subject": np.repeat(np.arange(50), 6), "query": ["q"] * 300, "response": high.ravel()}
    answers = xp.Answers(DOMAIN, {"q": ONE_BIT}, table)
    assert xp.estimation.estimate_distribution(answers).identified.all()


def test_bootstrap_intervals_are_reproducible_and_about_right() -> None:
    pairs = [(RANDOMIZED, y) for y, count in enumerate([400, 350, 250]) for _ in range(count)]
    estimate = xp.estimation.estimate_distribution(pairs, domain=DOMAIN)
    caught: list[tuple[int, int]] = []
    first = estimate.intervals(repetitions=300, seed=7, progress=lambda *at: caught.append(at))
    again = estimate.intervals(repetitions=300, seed=7)
    other = estimate.intervals(repetitions=300, seed=8)
    assert first.lower.tolist() == again.lower.tolist()
    assert first.lower.tolist() != other.lower.tolist()
    assert caught[-1] == (300, 300)
    exact = xp.estimation.estimate_frequencies(pairs, domain=DOMAIN).standard_error
    assert first.standard_error == pytest.approx(exact, rel=0.15)
    assert ((first.lower < estimate.probabilities) & (estimate.probabilities < first.upper)).all()


def survivors(
    query: Query, budget: int, rounds: int, shares: list[float], subjects: int
) -> tuple[xp.Answers, NDArray[np.intp], NDArray[np.bool_]]:
    """Subjects who are asked the same again and again, until the filter refuses."""
    generator = np.random.default_rng(11)
    values = generator.choice(len(shares), subjects, p=shares)
    domain = xp.FiniteSet(range(len(shares)))
    chances = np.array([float(query.on(domain).pmf(x).probability(1)) for x in range(len(shares))])
    guard = xp.BayesianFilter(epsilon=budget)
    accepted: dict[tuple[int, int], bool] = {}

    def accepts(high: int, low: int) -> bool:
        if (high, low) not in accepted:
            transcript = xp.Transcript(domain)
            for response in [1] * high + [0] * low:
                transcript = transcript.add(query, response)
            accepted[high, low] = bool(guard.decide(xp.Odometer(transcript), query))
        return accepted[high, low]

    high, low = np.zeros((2, subjects), dtype=np.intp)
    rows: list[NDArray[np.intp]] = []
    pairs: list[NDArray[np.intp]] = []
    for _ in range(rounds):
        states = zip(high.tolist(), low.tolist(), strict=True)
        staying = np.array([accepts(*state) for state in states])
        responses = (generator.random(subjects) < chances[values]).astype(np.intp)
        high += staying & (responses == 1)
        low += staying & (responses == 0)
        rows.append(np.flatnonzero(staying))
        pairs.append(responses[staying])
    table = {
        "subject": np.concatenate(rows),
        "query": ["q"] * sum(map(len, rows)),
        "response": np.concatenate(pairs),
    }
    return xp.Answers(domain, {"q": query}, table), values, staying


def test_under_a_filter_means_are_wrong_and_the_likeliest_distribution_is_not() -> None:
    shares = [0.1, 0.3, 0.6]
    answers, values, staying = survivors(ONE_BIT, 2, 20, shares, subjects=20_000)
    group = float(np.array(SCORES)[values].mean())
    per_subject = xp.estimation.estimate_mean(answers, "q")
    estimate = xp.estimation.estimate_distribution(answers)
    error = float(estimate.intervals(SCORES, repetitions=50).standard_error[0])
    assert per_subject.mean - group > 0.08
    assert abs(estimate.mean(SCORES) - group) < 4 * error
    assert error < 0.01
    # Those who are left differ from all, but by no more than their budget allows.
    left = float(np.array(SCORES)[values[staying]].mean())
    assert 0.02 < abs(left - group) <= math.tanh(2 / 4)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_bound_on_survivors_is_reached_and_never_passed(epsilon: float) -> None:
    generator = np.random.default_rng(2)
    bound = math.tanh(epsilon / 4)
    # Staying has probabilities within a factor of e^epsilon.
    for _ in range(2000):
        shares = generator.dirichlet(np.full(4, 0.5))
        stay = np.exp(-epsilon * generator.choice([0, 1, generator.random()], 4))
        scores = generator.choice([0, 1, generator.random()], 4)
        left = (shares * stay) @ scores / (shares @ stay)
        assert abs(left - shares @ scores) <= bound + 1e-12
    share = 1 / (1 + math.exp(epsilon / 2))
    left = share * math.exp(epsilon) / (share * math.exp(epsilon) + 1 - share)
    assert left - share == pytest.approx(bound)


def test_contradicting_responses_are_refused() -> None:
    sure = xp.channel([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    table = {"subject": [1, 1, 2], "query": ["q"] * 3, "response": [0, 1, 2]}
    with pytest.raises(xp.InvalidInput, match="no value allows all responses of some subjects"):
        xp.estimation.estimate_distribution(xp.Answers(DOMAIN, {"q": sure}, table))


ESTIMATE = xp.estimation.estimate_distribution([(RANDOMIZED, 1)], domain=DOMAIN)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            lambda: xp.estimation.estimate_distribution([], domain=DOMAIN),
            "answers: must not be empty",
        ),
        (
            lambda: xp.estimation.estimate_distribution([(RANDOMIZED, 1)]),
            "domain: must be a FiniteSet",
        ),
        (
            lambda: xp.estimation.estimate_distribution([(RANDOMIZED, 1)], domain=DOMAIN, gap=0),
            "gap: must be above 0",
        ),
        (
            lambda: xp.estimation.estimate_distribution(
                [(RANDOMIZED, 1)], domain=DOMAIN, gap=math.nan
            ),
            "gap: must be a finite number",
        ),
        (
            lambda: xp.estimation.estimate_distribution([(RANDOMIZED, 1)], domain=DOMAIN, steps=0),
            "steps: must be at least 1",
        ),
        (
            lambda: xp.estimation.estimate_distribution(
                [(xp.linear([1], epsilon=1), -1)],
                domain=xp.Box([(-1, 1)]),
            ),
            "domain: got a box, whose values cannot be listed",
        ),
        (lambda: ESTIMATE.mean([1, 2]), "scores: needs 3, one per value, not 2"),
        (lambda: ESTIMATE.mean([1, 2, "x"]), "scores[2]: must be a number"),
        (lambda: ESTIMATE.intervals(repetitions=49), "repetitions: must be at least 50"),
        (lambda: ESTIMATE.intervals(seed=-1), "seed: must be at least 0"),
        (lambda: ESTIMATE.intervals(confidence=0), "confidence: must be between"),
    ],
)
def test_bad_input_gets_one_clear_line(call: Any, reason: str) -> None:
    with pytest.raises(xp.InvalidInput) as error:
        call()
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)


def test_too_many_values_are_refused_by_a_line() -> None:
    pairs = [(xp.randomized_response(epsilon=1), 3)] * 10
    with pytest.raises(xp.InvalidInput, match="domain: got 1,501 values; expected at most 1,500"):
        xp.estimation.estimate_distribution(pairs, domain=xp.FiniteSet(range(1501)))


def test_a_seed_draws_the_same_subjects_from_a_table_and_from_a_folder(tmp_path: Path) -> None:
    values = xp.FiniteSet(["no", "yes", "often"])
    queries = {"a": xp.randomized_response(epsilon="1"), "b": xp.unary_encoding(epsilon="1")}
    rows = []
    for subject in range(30, 0, -1):
        transcript = xp.Transcript(values)
        for key in ("a", "b") if subject % 3 else ("b", "a"):
            responses = queries[key].on(values).responses
            response = responses[subject**3 % len(responses)]
            transcript = transcript.add(queries[key], response)
            rows.append((f"s{subject}", key, response))
        transcript.save(tmp_path / f"s{subject}.json")
    table = dict(zip(("subject", "query", "response"), zip(*rows, strict=True), strict=True))
    estimate = [
        xp.estimation.estimate_distribution(answers).intervals(repetitions=50, seed=3)
        for answers in (xp.Answers(values, queries, table), xp.load_answers(tmp_path))
    ]
    assert np.allclose(estimate[0].lower, estimate[1].lower, atol=1e-9)
    assert np.allclose(estimate[0].standard_error, estimate[1].standard_error, atol=1e-9)
