"""The rules for boxes let other searches pass, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpus.cases import Case, Outcome, Record
from corpus.sameness import differences

OLD = {"loss": {"lower": 1.0, "upper": 1.008}, "exchanges": 2, "largest_epsilon": "2.5"}
TEXT = """realized loss      1.00800
share of basic     50.4 %
budget respected   yes, at every exchange
"""


def same(old: str, new: str, *options: str, on_box: bool = True, code: int = 0) -> bool:
    command = ("expost", "loss", "subject.json", *options)
    kept = Record(Case("a case", {}, (command,), on_box=on_box), (), at_least=1.004)
    return not list(differences(kept, command, Outcome(0, old, "", {}), Outcome(code, new, "", {})))


def same_trees(**changed: Any) -> bool:
    return same(json.dumps(OLD), json.dumps({**OLD, **changed}), "--json")


@pytest.mark.parametrize("bounds", [(1.0, 1.006), (1.003, 1.0045), (0.998, 1.0075), (1.008, 1.009)])
def test_another_enclosure_of_the_same_loss_passes(bounds: tuple[float, float]) -> None:
    assert same_trees(loss={"lower": bounds[0], "upper": bounds[1]})


@pytest.mark.parametrize("bounds", [(1.0081, 1.009), (0.99, 1.005), (1.0, 1.003), (0.9, 0.99)])
def test_one_that_is_apart_or_wider_than_the_gap_or_too_low_fails(
    bounds: tuple[float, float],
) -> None:
    assert not same_trees(loss={"lower": bounds[0], "upper": bounds[1]})


def test_counts_and_fields_are_the_same_on_a_box() -> None:
    assert not same_trees(exchanges=3)
    assert not same_trees(more=1)
    assert same_trees(largest_epsilon="2.51")
    assert not same_trees(largest_epsilon="2.6")


def test_words_are_the_same_on_a_box_and_numbers_within_the_gap() -> None:
    assert same(TEXT, TEXT.replace("1.00800", "1.0002").replace("50.4", "50.1"))
    assert not same(TEXT, TEXT.replace("1.00800", "1.0202"))
    assert not same(TEXT, TEXT.replace("50.4", "55.4"))
    assert not same(TEXT, TEXT.replace("at every exchange", "no"))
    assert not same(TEXT, TEXT, code=1)


def test_a_finite_set_has_the_same_bytes() -> None:
    assert same(TEXT, TEXT, on_box=False)
    assert not same(TEXT, TEXT.replace("1.00800", "1.00801"), on_box=False)
    assert not same(TEXT, TEXT.replace("      ", "     "), on_box=False)
