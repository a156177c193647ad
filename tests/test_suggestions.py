"""A misspelt name suggests the right one, and an error about a value shows names and no value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import expost as xp
from expost.errors import OutsideDomain

PERSON = xp.Box(age=(10, 100), pressure=(50, 200), region=xp.categories("north", "south"))
SMOKES = xp.FiniteSet(["no", "yes"])
TABLE = {"subject": ["a"], "query": ["smokes"], "response": ["yes"]}


def _mean() -> xp.estimation.Mean:
    answers = xp.Answers(
        SMOKES, {"smokes": xp.perturbation([0, 1], epsilon=1)}, {**TABLE, "response": [1]}
    )
    return xp.estimation.estimate_mean(answers, "smoke")


@pytest.mark.parametrize(
    ("slip", "meant"),
    [
        (lambda: xp.randomised_response, "randomized_response"),  # type: ignore[attr-defined]
        (lambda: xp.bayesian_filter, "BayesianFilter"),  # type: ignore[attr-defined]
        (lambda: _asked({"presure": 1}), "pressure"),
        (lambda: _asked({"region": {"North": 1}}), "north"),
        (lambda: xp.unary_encoding(variant="optimised", epsilon=1), "optimized"),
        (lambda: xp.Transcript.from_json('{"version": 1, "domian": {}}'), "domain"),
        (lambda: xp.queries.query_from_json({"kind": "logit"}), "logistic"),
        (lambda: xp.queries.query_from_json({"kind": "duchi", "epsilom": 1}), "epsilon"),
        (lambda: xp.filters.filter_from_json({"kind": "baysian", "epsilon": 1}), "bayesian"),
        (lambda: xp.Answers(SMOKES, {"smoke": xp.randomized_response(epsilon=1)}, TABLE), "smoke"),
        (_mean, "smokes"),
    ],
)
def test_a_misspelt_name_suggests_the_right_one(slip: Callable[[], Any], meant: str) -> None:
    with pytest.raises((AttributeError, xp.InvalidInput), match=rf"; did you mean '{meant}'\?$"):
        slip()


def _asked(weights: Any) -> xp.Transcript:
    return xp.Transcript(PERSON).add(xp.linear(weights, range=(0, 200), epsilon=1), 0)


def test_a_name_that_is_like_none_suggests_nothing() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'xyz'$"):
        xp.xyz  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            {"age": 777, "presure": 777, "region": "secret"},
            ": it has no pressure; 'presure' is not known; did you mean 'pressure'?",
        ),
        ({"age": 777, "region": "secret"}, ": it has no pressure"),
        (
            {"age": 777, "pressure": 777, "region": "secret", "secret": 777},
            ": 1 of its names is not known",
        ),
        ({"secret": 777}, ": it has no age, pressure, region; 1 of its names is not known"),
        ((777, 777), ": it has 2 coordinates, not 3"),
        # Which coordinate is outside its bounds would tell something of the value.
        ({"age": 777, "pressure": 60, "region": "north"}, ""),
        (777, ""),
        ("secret", ""),
    ],
)
def test_an_error_about_a_value_names_coordinates_and_shows_no_value(value: Any, said: str) -> None:
    with pytest.raises(OutsideDomain) as error:
        xp.Session(PERSON, value, filter=xp.BayesianFilter(epsilon=1))
    assert str(error.value) == f"the value is outside the domain (and is not shown here){said}"
    assert "777" not in str(error.value)
    assert "secret" not in str(error.value)


class _Telling(Mapping[str, int]):
    """A value whose own errors show it."""

    def __getitem__(self, name: str) -> int:
        raise RuntimeError("777")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("777")

    def __len__(self) -> int:
        return 3


def test_a_value_that_raises_is_not_shown_either() -> None:
    with pytest.raises(OutsideDomain, match=r"is not shown here\)$"):
        xp.Session(PERSON, _Telling(), filter=xp.BayesianFilter(epsilon=1))
