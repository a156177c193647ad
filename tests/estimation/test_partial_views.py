"""Hidden responses of other analysts: summed over, as an enumeration of all of them says."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.answers import views_of
from expost.estimation import estimate_distribution
from expost.estimation._partial_views import observe_views
from expost.estimation._support import read_estimand

Matrix = list[list[Fraction]]
YES_NO = xp.FiniteSet(["no", "yes"])
COIN = xp.randomized_response(epsilon="1")


def channel(rows: Matrix) -> xp.queries.Query:
    return xp.channel([[f"{p}" for p in row] for row in rows])


def accepted(rows: Matrix, learned: list[Fraction], ratio: Fraction) -> bool:
    """The Bayesian filter, from its definition, in fractions."""
    after = [
        [p * row[y] for p, row in zip(learned, rows, strict=True)] for y in range(len(rows[0]))
    ]
    return all(max(weights) <= ratio * min(weights) for weights in after)


def enumerated(
    view: list[tuple[str, str, int | None]], tables: dict[str, Matrix], ratio: Fraction
) -> list[Fraction]:
    """The sum over all hidden responses, each of which is tried."""
    size = len(next(iter(tables.values())))
    hidden = [key for outcome, key, _ in view if outcome == "hidden"]
    total = [Fraction(0)] * size
    for guess in itertools.product(*(range(len(tables[key][0])) for key in hidden)):
        guesses, learned, fits = iter(guess), [Fraction(1)] * size, True
        for outcome, key, position in view:
            if accepted(tables[key], learned, ratio) == (outcome == "refused"):
                fits = False
                break
            if outcome != "refused":
                y = position if position is not None else next(guesses)
                learned = [p * row[y] for p, row in zip(learned, tables[key], strict=True)]
        if fits:
            total = [a + b for a, b in zip(total, learned, strict=True)]
    return total


def drawn(
    generator: np.random.Generator, tables: dict[str, Matrix], ratio: Fraction, length: int
) -> list[tuple[str, str, int | None]]:
    """What happened to a subject whose answers are partly hidden."""
    size = len(next(iter(tables.values())))
    true, learned = int(generator.integers(size)), [Fraction(1)] * size
    view: list[tuple[str, str, int | None]] = []
    for _ in range(length):
        key = str(generator.choice(list(tables)))
        rows = tables[key]
        if not accepted(rows, learned, ratio):
            view.append(("refused", key, None))
            continue
        chances = np.array(rows[true], dtype=float)
        y = int(generator.choice(len(chances), p=chances / chances.sum()))
        learned = [p * row[y] for p, row in zip(learned, rows, strict=True)]
        visible = generator.random() < 0.5
        view.append(("answered", key, y) if visible else ("hidden", key, None))
    return view


def random_table(generator: np.random.Generator, size: int, responses: int) -> Matrix:
    weights = generator.integers(2, 6, (size, responses)).tolist()
    return [[Fraction(w, sum(row)) for w in row] for row in weights]


def study(
    views: list[list[tuple[str, str, int | None]]], tables: dict[str, Matrix], ratio: Fraction
) -> tuple[xp.Answers, dict[str, Any]]:
    rows = [(n, *attempt) for n, view in enumerate(views) for attempt in view]
    answer_pairs = [row for row in rows if row[1] == "answered"]
    queries = {key: channel(table) for key, table in tables.items()}
    answers = xp.Answers(
        xp.FiniteSet(range(len(next(iter(tables.values()))))),
        queries,
        {
            "subject": [row[0] for row in answer_pairs],
            "query": [row[2] for row in answer_pairs],
            "response": [row[3] for row in answer_pairs],
        },
        complete=False,
        filter=xp.BayesianFilter(ratio=str(ratio)),
    )
    attempts: dict[str, Any] = {
        "subject": [row[0] for row in rows],
        "query": [row[2] for row in rows],
        "outcome": [row[1] for row in rows],
    }
    return answers, attempts


@pytest.mark.parametrize("seed", range(12))
def test_the_likelihood_of_a_view_is_the_sum_over_all_hidden_responses(seed: int) -> None:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 4))
    tables = {key: random_table(generator, size, int(generator.integers(2, 4))) for key in "ab"}
    ratio = Fraction(int(generator.integers(10, 18)), 2)
    views = [drawn(generator, tables, ratio, 7) for _ in range(12)]
    views = [view for view in views if view] + [[("answered", "a", 0)]]
    answers, attempts = study(views, tables, ratio)
    estimate = observe_views(
        answers,
        views_of(answers, attempts),
        xp.BayesianFilter(ratio=str(ratio)),
        read_estimand(answers, None, None).support,
    )
    expected: Counter[tuple[float, ...]] = Counter()
    for view in views:
        row = enumerated(view, tables, ratio)
        expected[tuple(round(float(p / max(row)), 9) for p in row)] += 1
    shown: Counter[tuple[float, ...]] = Counter()
    for likelihoods, count in zip(estimate.table, estimate.counts, strict=True):
        shown[tuple(round(float(p), 9) for p in likelihoods[estimate.groups])] += int(count)
    assert shown == expected
    outcomes = Counter(outcome for view in views for outcome, *_ in view)
    assert outcomes["hidden"] > 5


def asked_twice(
    generator: np.random.Generator, subjects: int, share: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One analyst asks everybody once, and a second one until the filter refuses."""
    yes = generator.random(subjects) < share
    balance = np.zeros(subjects, dtype=int)
    rows: list[tuple[int, str]] = []
    answer_pairs: list[tuple[int, bool]] = []
    left = np.arange(subjects)
    for turn in range(20):
        fits = np.abs(balance[left]) < 2  # one more of epsilon 1 is within the budget of 2
        rows += [(int(subject), "refused") for subject in left[~fits]]
        left = left[fits]
        said = yes[left] ^ (generator.random(len(left)) < 1 / (1 + math.e))
        balance[left] += np.where(said, 1, -1)
        rows += [(int(subject), "answered" if turn else "hidden") for subject in left]
        answer_pairs += zip(left.tolist(), said.tolist(), strict=True) if turn else []
    table = {
        "subject": [subject for subject, _ in answer_pairs],
        "query": ["q"] * len(answer_pairs),
        "response": ["yes" if answer else "no" for _, answer in answer_pairs],
    }
    attempts = {
        "subject": [subject for subject, _ in rows],
        "query": ["q"] * len(rows),
        "outcome": [outcome for _, outcome in rows],
    }
    return table, attempts


def test_with_all_attempts_an_estimate_from_a_part_is_right() -> None:
    table, attempts = asked_twice(np.random.default_rng(2), 12_000, 0.8)
    answers = xp.Answers(
        YES_NO, {"q": COIN}, table, complete=False, filter=xp.BayesianFilter(epsilon=2)
    )
    with pytest.warns(UserWarning, match="incomplete"):
        biased = estimate_distribution(answers)
    estimate = estimate_distribution(answers, attempts=attempts)
    ends = estimate.intervals()
    assert ends.lower[1] < 0.8 < ends.upper[1]
    error = float(ends.standard_error[1])
    assert abs(estimate.probabilities[1] - 0.8) < 3 * error < 0.02
    assert biased.probabilities[1] > 0.8 + 6 * error
    assert estimate.gap <= 1e-6
    assert estimate.provenance.subjects == 12_000
    assert estimate.provenance.doubts == ()
    assert "nothing hidden but what the filter accepted" in estimate.provenance.assumes


def test_nothing_hidden_is_the_estimate_from_all_answers() -> None:
    generator = np.random.default_rng(5)
    responses = generator.choice(["no", "yes"], 40, p=[0.3, 0.7]).tolist()
    table = {"subject": list(range(40)), "query": ["q"] * 40, "response": responses}
    answers = xp.Answers(YES_NO, {"q": COIN}, table, filter=xp.BayesianFilter(epsilon=2))
    attempts = {**table, "outcome": ["answered"] * 40}
    del attempts["response"]
    estimate = estimate_distribution(answers, attempts=attempts)
    assert estimate.probabilities == pytest.approx(
        estimate_distribution(answers).probabilities, abs=1e-5
    )


def test_bad_attempts_are_one_line() -> None:
    table = {"subject": ["ann", "bob"], "query": ["q", "q"], "response": ["no", "yes"]}
    filter_ = xp.BayesianFilter(epsilon=2)
    answers = xp.Answers(YES_NO, {"q": COIN}, table, filter=filter_)
    good = {"subject": ["ann", "bob"], "query": ["q"] * 2, "outcome": ["answered"] * 2}
    both = {"subject": ["ann"] * 3 + ["bob"], "query": ["q"] * 4}
    for attempts, message in [
        ({**good, "outcome": ["answered", "no"]}, "attempts: row 2: outcome: got 'no'; expected"),
        ({**good, "query": ["q", "x"]}, "attempts: row 2: query: unknown query"),
        ({**good, "subject": ["ann", "ann"]}, "attempts: subject 'bob' answered but has no row"),
        (
            {**good, "outcome": ["answered", "hidden"]},
            "attempts: got answered queries of subject 'bob' that differ from those of its",
        ),
        (
            {**both, "outcome": ["refused", "hidden", "answered", "answered"]},
            "attempts: got outcomes that the declared filter cannot give",
        ),
        ({"subject": ["ann"], "query": ["q"]}, "attempts: column 'outcome' is missing"),
    ]:
        with pytest.raises(xp.InvalidInput) as raised:
            estimate_distribution(answers, attempts=attempts)
        assert str(raised.value).startswith(message), raised.value
    unnamed = xp.Answers(YES_NO, {"q": COIN}, table)
    with pytest.raises(xp.InvalidInput, match="filter: the answers must name it"):
        estimate_distribution(unnamed, attempts=good)
    with pytest.raises(xp.InvalidInput, match="answers: must be Answers, if there are attempts"):
        estimate_distribution([(COIN, "no")], domain=YES_NO, attempts=good)
