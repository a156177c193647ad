"""Families that are not ours."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

import pytest

import expost as xp
from expost.proof.verify import Failed, verify
from expost.queries import FAMILIES, FiniteLikelihood, Query, RandomizedResponse, register
from expost.report.words import query_in_words

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
    asked = xp.Transcript(DOMAIN).add(Bare(), "a")
    proof = '{"version": 1, "responses": ["a"], "loss": "1"}'
    with pytest.raises(Failed, match=r"exchanges\.0: unknown kind"):
        verify(asked.to_json(), proof)
