"""Survey designs: their probabilities, epsilons and estimators are those of the literature."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from mpmath import exp, log, mp

import expost as xp
from expost.numbers import Nats
from expost.queries import Channel, crosswise, forced_response, unrelated_question, warner

DOMAIN = xp.FiniteSet(["no", "yes"])

DESIGNS: dict[str, Callable[..., Channel]] = {
    "warner": warner,
    "crosswise": crosswise,
    "forced response": forced_response,
    "dice": lambda **options: forced_response(yes="1/6", **options),
    "unrelated question": lambda **options: unrelated_question(prevalence="0.13", **options),
}


def rows_of(query: Channel) -> list[list[Fraction]]:
    return [[Fraction(w, query.denominator) for w in row] for row in query.weights.tolist()]


@pytest.mark.parametrize(
    ("query", "yes_if_no", "yes_if_yes"),
    [
        (warner("0.7"), "0.3", "0.7"),
        (warner("0.2"), "0.8", "0.2"),
        (crosswise("0.25"), "0.75", "0.25"),  # "same" is the second response
        (forced_response("0.75", yes="1/6"), "1/24", "19/24"),
        (forced_response("0.6"), "0.2", "0.8"),
        (unrelated_question("0.7", prevalence="0.1"), "0.03", "0.73"),
    ],
)
def test_the_probabilities_are_those_of_the_design(
    query: Channel, yes_if_no: str, yes_if_yes: str
) -> None:
    of_no, of_yes = rows_of(query)
    assert of_no == [1 - Fraction(yes_if_no), Fraction(yes_if_no)]
    assert of_yes == [1 - Fraction(yes_if_yes), Fraction(yes_if_yes)]


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@pytest.mark.parametrize("epsilon", ["0.001", "0.1", "1/3", "1", "2", "5", "9"])
def test_an_epsilon_is_never_exceeded_and_nearly_reached(
    design: Callable[..., Channel], epsilon: str
) -> None:
    query = design(epsilon=epsilon)
    assert query.charge(DOMAIN) <= Nats.budget(epsilon)
    with mp.workdps(40):
        rows = [[mp.mpf(p.numerator) / p.denominator for p in row] for row in rows_of(query)]
        ratios = [abs(log(no / yes)) for no, yes in zip(*rows, strict=True)]
        target = mp.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator
        # One more unit in the ninth decimal of the probability changes the ratio by this, at most.
        slack = mp.mpf(10) ** -9 * exp(target) * 40
        assert 0 <= target - max(ratios) <= slack


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_those_of_the_textbook(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, p, prevalence = 1000, 0.7, 0.13
    yes = int(rng.integers(350, 650))
    share = yes / n
    textbook = {
        warner("0.7"): (share - (1 - p)) / (2 * p - 1),
        crosswise("0.7", responses=["no", "yes"]): (share - (1 - p)) / (2 * p - 1),
        unrelated_question("0.7", prevalence="0.13"): (share - (1 - p) * prevalence) / p,
        forced_response("0.7", yes="0.13"): (share - (1 - p) * prevalence) / p,
    }
    for query, expected in textbook.items():
        table = {
            "subject": range(n), "query": ["q"] * n, "response": ["yes"] * yes + ["no"] * (n - yes)
        }  # fmt: skip
        answers = xp.Answers(DOMAIN, {"q": query}, table)
        estimate = xp.estimation.estimate_frequencies(answers)
        assert estimate.frequency[1] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: warner(), "expected one of p and epsilon"),
        (lambda: warner("0.7", epsilon=1), "expected one of p and epsilon"),
        (lambda: warner("1.2"), "p: got 1.2; expected a probability"),
        (lambda: crosswise("-1"), "prevalence: got -1; expected a probability"),
        (lambda: forced_response("0.5", yes=1), "yes: must be above 0 and below 1"),
        (lambda: unrelated_question("0.5", prevalence=0), "prevalence: must be above 0"),
        (lambda: warner(epsilon=0), "epsilon: must be"),
    ],
)
def test_bad_designs_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        make()


def test_the_command_writes_designs_by_name(
    run: Callable[..., tuple[int, str, str]], tmp_path: Any
) -> None:
    code, out, err = run("query", "warner", "--p", "0.7", "--out", tmp_path / "query.json")
    assert (code, err) == (0, "")
    assert "at epsilon 0.847298" in out
    assert xp.queries.load_query(tmp_path / "query.json").content_id == warner("0.7").content_id
    code, _, err = run("query", "unrelated_question", "--p", "0.7")
    assert code == 2
    assert err.startswith("expost: unrelated_question requires --prevalence; its options: ")
