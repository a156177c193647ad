"""Witnesses over attributes, against all records listed."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import expost as xp
from expost.errors import InvalidInput
from expost.knowledge import witness
from expost.numbers import Nats
from support.record_cases import likelihoods, list_records, matching_indices, random_record_case


def test_a_witness_gains_what_the_loss_says_and_its_records_are_extreme() -> None:
    for seed in range(80):
        case = random_record_case(random.Random(seed))
        records = list_records(case.domain, case.steps)
        weights = likelihoods(case.transcript, records)
        found = witness(case.transcript, "0.01")
        ratio = Fraction(max(weights), min(weights))
        assert found.loss == Nats(ratio=ratio)
        assert isinstance(found.likeliest, dict)
        assert isinstance(found.unlikeliest, dict)
        above = weights[matching_indices(found.likeliest, records)[0]]
        below = weights[matching_indices(found.unlikeliest, records)[0]]
        assert (above, below) == (max(weights), min(weights))
        # By Bayes' rule over the two records.
        share = found.before
        assert found.after == share * above / (share * above + (1 - share) * below)
        assert found.loss.enclosure.upper - found.gain.lower <= 0.01 + 1e-12


def test_a_witness_over_attributes_is_ruled_out_where_the_loss_is_infinite() -> None:
    domain = xp.Attributes(a=["x", "y"], b=["x", "y"])
    sure = xp.channel([["1/2", "1/2"], ["0", "1"]])
    transcript = xp.Transcript(domain).add_position(sure.about("b"), 0)
    found = witness(transcript, 1)
    assert (found.likeliest, found.unlikeliest) == ({"b": "x"}, {"b": "y"})
    assert (found.before, found.after) == (Fraction(1, 2), Fraction(0))
    assert found.loss.is_infinite
    assert found.gain.upper == -math.inf
    never = xp.channel([["0", "1"], ["1/2", "1/2"]])
    with pytest.raises(InvalidInput, match="no value can have given these responses"):
        witness(transcript.add_position(never.about("b"), 0), 1)


def test_a_witness_as_json_has_records_by_name_and_step() -> None:
    domain = xp.Attributes(a=["x", "y"], b=xp.changing([0, 1], times=1))
    query = xp.randomized_response(epsilon=1).about("a", "b", at=3)
    tree = witness(xp.Transcript(domain).add(query, ("x", 1)), 1).tree()
    assert tree["likeliest"] == {"a": "x", "b": {3: 1}}
