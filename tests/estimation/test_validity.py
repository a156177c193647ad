"""What estimates are made from: a part of the answers is said to be one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import expost as xp
from support.answer_logs import with_outcomes

DOMAIN = xp.FiniteSet(["no", "yes"])
TABLE = {"subject": ["a", "b", "b"], "query": ["r", "r", "p"], "response": ["no", "yes", 1]}
QUERIES: dict[str, xp.queries.Query] = {
    "r": xp.randomized_response(epsilon=1),
    "p": xp.perturbation([0, 1], epsilon=1),
}

ESTIMATES: list[Callable[[Any], object]] = [
    lambda answers: xp.estimation.estimate_mean(answers, "p"),
    lambda answers: xp.estimation.estimate_frequencies(answers),
    lambda answers: xp.estimation.estimate_distribution(answers),
]


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_an_estimate_from_a_part_warns_and_one_from_all_does_not(
    estimate: Callable[[Any], object],
) -> None:
    full, part = (
        xp.Answers(DOMAIN, QUERIES, TABLE, complete=complete) for complete in (True, False)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        estimate(full)
    with pytest.warns(UserWarning, match="the answers are incomplete: .* can be biased$") as caught:
        estimate(part)
    assert len(caught) == 1
    # It names the line of whoever asked for the estimate.
    assert caught[0].filename == __file__


def answers_under(filter_: xp.filters.Filter | None, refused: Any = None) -> xp.Answers:
    table = TABLE if refused is None else with_outcomes(TABLE, refused)
    return xp.Answers(DOMAIN, QUERIES, table, filter=filter_)


@pytest.mark.parametrize("estimate", ESTIMATES[:2])
@pytest.mark.parametrize(
    "filter_", [xp.BayesianFilter(4), xp.SimplifiedFilter(4), xp.ApproximateFilter(4, "1e-6")]
)
def test_an_estimate_that_a_filter_makes_wrong_warns_and_points_to_the_likelihood(
    estimate: Callable[[Any], Any], filter_: xp.filters.Filter
) -> None:
    with pytest.warns(UserWarning, match="is biased; estimate_distribution is not, if") as caught:
        result = estimate(answers_under(filter_))
    assert [str(warning.message) for warning in caught] == list(result.provenance.doubts)
    assert caught[0].filename == __file__
    assert "\nbut: the answers were given under a filter" in repr(result)


def test_what_no_filter_makes_wrong_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ESTIMATES[2](answers_under(xp.BayesianFilter(4)))
        # The sum of the epsilons is the same whatever was responded.
        for filter_ in (
            xp.BasicFilter(4),
            xp.filters.CompositionFilter(4, "1e-6", xp.filters.Rogers()),
        ):
            for estimate in ESTIMATES:
                estimate(answers_under(filter_))


@pytest.mark.parametrize(
    ("estimate", "subjects", "responses", "refused"),
    [(ESTIMATES[0], 1, 1, 2), (ESTIMATES[2], 2, 3, 3)],
)
def test_an_estimate_says_what_it_used_who_was_refused_and_what_it_assumes(
    estimate: Callable[[Any], Any], subjects: int, responses: int, refused: int
) -> None:
    pairs = [("a", "p"), ("c", "p"), ("c", "r"), ("c", "p"), ("d", "r")]
    result = estimate(answers_under(None, pairs))
    provenance = result.provenance
    assert (provenance.subjects, provenance.responses) == (subjects, responses)
    assert provenance.unanswered == {"refused": refused, "declined": 0, "missing": 0}
    tree = result.tree()
    for name in ("subjects", "responses", "unanswered", "assumes"):
        assert tree[name] == getattr(provenance, name)
    for text in (repr(result), result._repr_html_()):
        amount = f"{responses} response{'s'[: responses > 1]} of {subjects} subject"
        assert amount in text
        assert f"{refused} subjects" in text
        assert "random sample" in text
    assert estimate(answers_under(None)).provenance.unanswered is None
