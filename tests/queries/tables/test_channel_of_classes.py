"""A channel over classes of values is the channel whose rows are written out."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import expost as xp
from expost.files.reading import parse
from expost.proof.verify import Values
from expost.proof.verify import channel as checked_channel
from expost.queries import query_from_json
from support.random_cases import columns, exact_rows


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any, xp.FiniteSet]:
    """A channel over classes, and the same with a row for each value."""
    rows = draw(st.integers(1, 4).flatmap(lambda size: exact_rows(size, zeros=True)))
    further = draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    of = draw(st.permutations([*range(len(rows)), *further]))
    domain = xp.FiniteSet(range(len(of)))
    return xp.channel(rows, of=of), xp.channel([rows[c] for c in of]), domain


@given(pairs(), st.data())
def test_it_is_the_channel_whose_rows_are_written_out(
    both: tuple[Any, Any, xp.FiniteSet], data: st.DataObject
) -> None:
    compact, full, domain = both
    assert columns(compact, domain) == columns(full, domain)
    a, b = compact.on(domain), full.on(domain)
    assert (a.responses, a.epsilon, a.least_loss) == (b.responses, b.epsilon, b.least_loss)
    assert a.delta(Fraction(3, 2)) == b.delta(Fraction(3, 2))
    responses = [data.draw(st.sampled_from(a.responses)) for _ in range(3)]
    losses = []
    for query in (compact, full):
        transcript = xp.Transcript(domain)
        for response in responses:
            transcript = transcript.add(query, response)
        odometer = xp.Odometer(transcript)
        decision = xp.BayesianFilter(epsilon=1).decide(odometer, query)
        losses.append((odometer.exact_loss, decision.accepted, decision.worst_response))
    assert losses[0] == losses[1]


@given(pairs())
def test_its_file_says_the_same(both: tuple[Any, Any, xp.FiniteSet]) -> None:
    compact, full, domain = both
    again = query_from_json(parse(compact.to_json()))
    assert again == compact
    assert again.content_id == compact.content_id != full.content_id
    values = Values(list(domain.values), [])
    read = json.loads(compact.to_json(), parse_float=str, parse_int=Decimal)
    written = json.loads(full.to_json(), parse_float=str, parse_int=Decimal)
    for response in read["responses"]:
        loss = checked_channel(read, response, values)
        assert loss == checked_channel(written, response, values)


def test_without_classes_the_id_is_what_it_was() -> None:
    assert xp.channel([["2/5", "3/5"], ["1/2", "1/2"]]).content_id.startswith("e7c97b619a4a5144")


@pytest.mark.parametrize(
    ("of", "message"),
    [
        ([0, 2], r"of\[1\]: must be one of 2 classes, from 0"),
        ([0, -1], r"of\[1\]: must be one of 2 classes"),
        ([0, 0], "of: no value is in class 1"),
        ([0, 0.5], r"of\[1\]: must be an integer"),
        ([0, True], r"of\[1\]"),
        ("01", "of: must be a list"),
        ([], "of: no value is in class 0"),
    ],
)
def test_classes_that_are_none_are_refused(of: Any, message: str) -> None:
    with pytest.raises(xp.InvalidInput, match=message):
        xp.channel([["2/5", "3/5"], ["1/2", "1/2"]], of=of)


def test_there_is_a_class_for_every_value() -> None:
    query = xp.channel([["2/5", "3/5"], ["1/2", "1/2"]], of=[0, 1, 1])
    assert repr(query) == "Channel(3 values in 2 classes, 2 responses)"
    assert query.asks == "a channel over 2 classes of values to 0 or 1"
    with pytest.raises(xp.InvalidInput, match="of: 3 classes for a domain of 2 values"):
        query.on(xp.FiniteSet(["a", "b"]))
    with pytest.raises(xp.InvalidInput, match="is about 2 classes of values; estimate_dist"):
        xp.estimation.frequencies.decoder_for(query.on(xp.FiniteSet(["a", "b", "c"])))


def test_many_values_are_work_for_each_class_only() -> None:
    size = 100_000
    of = np.arange(size) % 3
    domain = xp.FiniteSet(range(size))
    table = [[f"{i + 1}/1000003" for i in range(3)] + ["999997/1000003"]] * 3
    table[1] = ["999997/1000003", *table[1][:3]]
    written = xp.channel(table, of=of).to_json()
    start = time.process_time()
    query = query_from_json(parse(written))
    assert query.content_id
    odometer = xp.Odometer(xp.Transcript(domain)).add(query, 1)
    assert xp.BayesianFilter(epsilon=20).decide(odometer, query)
    assert odometer.exact_loss.ratio
    # A row for each value is more than ten times as much.
    assert time.process_time() - start < 2
