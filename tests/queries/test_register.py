"""Families that are not ours."""

from __future__ import annotations

from dataclasses import fields
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

import expost as xp
from expost.filters import Filter
from expost.numbers import Nats, scaled_exp
from expost.proof.verify import Failed, verify
from expost.queries import (
    FAMILIES,
    BoxLikelihood,
    FiniteLikelihood,
    Linear,
    Query,
    RandomizedResponse,
    TableLikelihood,
    register,
)
from expost.report._formatting import query_in_words

DOMAIN = xp.FiniteSet(["a", "b", "c"])


@pytest.fixture(autouse=True)
def _forgotten_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("expost.queries.FAMILIES", FAMILIES.copy())


class Ours(RandomizedResponse):
    kind: ClassVar[str] = "ours"


class Theirs(RandomizedResponse):
    kind: ClassVar[str] = "ours"


class Bare(Query):
    """A family with nothing but what it has to have."""

    kind: ClassVar[str] = "a_bare_one"
    epsilon = Fraction(1)

    def tree(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Bare:
        return cls()

    def with_epsilon(self, epsilon: Fraction) -> None:
        return None

    def on_set(self, domain: xp.FiniteSet) -> FiniteLikelihood:
        return RandomizedResponse(self.epsilon).on(domain)


def test_a_file_holds_a_family_once_it_is_registered() -> None:
    transcript = xp.Transcript(DOMAIN).add(Bare(), "a")
    with pytest.raises(xp.InvalidInput, match=r"exchanges\[0\]\.query\.kind: unknown query"):
        xp.Transcript.from_json(transcript.to_json())
    assert register(Bare) is Bare
    again = xp.Transcript.from_json(transcript.to_json())
    assert again == transcript
    assert xp.realized_loss(again) == xp.loss.worst_case_loss(Bare(), DOMAIN)
    assert query_in_words(Bare(), DOMAIN) == "a bare one, at epsilon 1"


def test_a_kind_has_one_family_and_a_module_may_run_again() -> None:
    register(Ours)
    register(Ours)
    with pytest.raises(xp.InvalidInput, match="kind: 'ours' is taken by Ours"):
        register(Theirs)
    with pytest.raises(xp.InvalidInput, match="kind: 'randomized_response' is taken"):
        register(type("Mine", (RandomizedResponse,), {}))


@pytest.mark.parametrize("family", [int, "ours", RandomizedResponse(Fraction(1))])
def test_only_classes_of_queries_are_families(family: Any) -> None:
    with pytest.raises(xp.InvalidInput, match="must be a class of queries"):
        register(family)


def test_a_family_needs_a_kind_that_is_a_name() -> None:
    with pytest.raises(xp.InvalidInput, match="kind: must be a name"):
        register(type("Mine", (RandomizedResponse,), {"kind": "not a name"}))


def test_the_checker_does_not_know_them() -> None:
    register(Bare)
    subject_record = xp.Transcript(DOMAIN).add(Bare(), "a")
    proof = '{"version": 1, "responses": ["a"], "loss": "1"}'
    with pytest.raises(Failed, match=r"exchanges\.0: unknown kind"):
        verify(subject_record.to_json(), proof)


class FromColumns(Bare):
    """Whatever columns of weights it is given, with an epsilon of 1."""

    def __init__(self, *columns: list[int]) -> None:
        self.columns = columns

    def on_set(self, domain: xp.FiniteSet) -> FiniteLikelihood:
        wide = max(map(max, self.columns), default=0) >= 2**63
        columns = [np.array(c, dtype=object if wide else np.int64) for c in self.columns]
        return TableLikelihood(domain, range(len(columns)), columns)


GUARDS = [
    xp.BasicFilter(epsilon=10),
    xp.SimplifiedFilter(epsilon=10),
    xp.BayesianFilter(epsilon=10),
    xp.filters.CompositionFilter(10, "1e-6", xp.filters.Renyi(5)),
]


@pytest.mark.parametrize("guard", GUARDS, ids=str)
def test_a_family_that_names_less_than_its_weights_have_is_refused(guard: Filter) -> None:
    subject_record = xp.Odometer(xp.Transcript(DOMAIN))
    # log(3/1) is 1.0986…, and log(2/1) is 0.69…
    with pytest.raises(xp.InvalidInput, match=r"epsilon: got 1, but .* up to 1\.09861\. "):
        guard.decide(subject_record, FromColumns([3, 1, 2], [1, 3, 2]))
    assert guard.decide(subject_record, FromColumns([2, 1, 1], [1, 2, 2])).accepted


def test_the_epsilon_of_a_family_is_compared_exactly() -> None:
    light = 2**48
    heavy = scaled_exp(Fraction(1), 48)
    within_epsilon = FromColumns([heavy, light, light], [light, heavy, heavy])
    assert within_epsilon.on(DOMAIN).epsilon < Nats(Fraction(1))
    heavy += 1
    broken = FromColumns([heavy, light, light], [light, heavy, heavy])
    with pytest.raises(xp.InvalidInput, match=r"up to 1\.000000000000"):
        broken.on(DOMAIN)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ([[3, 2, 2], [2, 2, 3]], "add up to 4 for one value and to 5 for another"),
        # Both totals are 2^63, which int64 would take for the same negative number.
        ([[2**62, 0, 1], [2**62, 1, 1]], f"add up to 1 for one value and to {2**63}"),
        ([[0, 0, 0], [0, 0, 0]], "add up to 0 for one value"),
        ([[3, -1, 2], [1, 5, 2]], "a weight is negative"),
        ([[3, 2], [2, 3]], "expected 2 columns of weights"),
        ([], "expected 0 columns of weights"),
    ],
)
def test_columns_are_the_weights_of_a_likelihood(columns: list[list[int]], reason: str) -> None:
    with pytest.raises(xp.InvalidInput, match=reason):
        FromColumns(*columns).on(DOMAIN)


def test_a_family_on_a_box_that_names_less_than_it_has_is_refused() -> None:
    class Louder(Linear):
        kind: ClassVar[str] = "louder"

        def on_box(self, domain: xp.Box) -> BoxLikelihood:
            return Linear(self.score, self.range, self.clip, 3 * self.epsilon).on(domain)

    square = xp.Box([(-1, 1), (-1, 1)])
    query = xp.linear([1, 1], range=(-2, 2), epsilon="0.5")
    louder = Louder(**{f.name: getattr(query, f.name) for f in fields(query)})
    with pytest.raises(
        xp.InvalidInput, match=r"got 0\.5, but the weights of louder have .* up to 1\.5"
    ):
        louder.on(square)


@pytest.mark.parametrize("scale", [1, 2**70])
def test_a_family_that_names_an_epsilon_may_not_have_a_weight_of_zero(scale: int) -> None:
    never = FromColumns([scale, 0, scale], [scale, 2 * scale, scale])
    with pytest.raises(xp.InvalidInput) as error:
        xp.realized_loss(xp.Transcript(DOMAIN).add(never, 1))
    assert str(error.value) == (
        f"epsilon: got 1, but {never.kind} has a response that only some values can give, so its "
        "loss is infinite. Make every weight positive, or leave out epsilon"
    )


@pytest.mark.parametrize("scale", [1, 2**70])
def test_a_family_without_an_epsilon_may_have_a_weight_of_zero(scale: int) -> None:
    class Unbounded(FromColumns):
        kind: ClassVar[str] = "unbounded"
        epsilon = None  # type: ignore[assignment]

    never = Unbounded([scale, 0, scale], [scale, 2 * scale, scale])
    start = xp.Transcript(DOMAIN)
    assert xp.realized_loss(start.add(never, 0)).lower == float("inf")
    assert Nats(ratio=Fraction(2)) == xp.Odometer(start.add(never, 1)).exact_loss
    decision = xp.BayesianFilter(epsilon=9).decide(xp.Odometer(start), never)
    assert (decision.accepted, decision.loss_at_worst.upper) == (False, float("inf"))
