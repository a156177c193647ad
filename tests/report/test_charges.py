"""How far basic composition would have come."""

from __future__ import annotations

import random
from unittest.mock import patch

import expost as xp
from expost.loss import Odometer
from expost.numbers import Nats
from expost.queries import Query
from expost.report._comparison import basic_charges, basic_prefix

VALUES = xp.FiniteSet([0, 1])
NORMAL = xp.gaussian({"value": 1}, range=(0, 1), grid=1, sigma=3)


def test_it_stops_where_the_basic_filter_does() -> None:
    draw = random.Random(3)
    for _ in range(60):
        transcript, budget = xp.Transcript(VALUES), Nats.budget(f"0.{draw.randrange(1, 9)}")
        for _ in range(draw.randrange(12)):
            query: Query = xp.randomized_response(epsilon=f"0.{draw.randrange(1, 4)}")
            if draw.random() < 0.05:
                query = NORMAL
            transcript = transcript.add(query, draw.randrange(2))
        filter_, accepted = xp.BasicFilter.of(budget), 0
        while accepted < len(transcript):
            query_ = transcript.exchanges[accepted].query
            if not filter_.accepts(xp.Odometer(transcript.first(accepted)), query_):
                break
            accepted += 1
        assert basic_prefix(xp.Odometer(transcript), budget) == accepted


def test_it_is_read_off_the_sums_that_are_known() -> None:
    transcript, query = xp.Transcript(VALUES), xp.randomized_response(epsilon="0.1")
    for _ in range(200):
        transcript = transcript.add(query, 1)
    odometer = xp.Odometer(transcript)
    with patch.object(Odometer, "_absorb", side_effect=AssertionError("added up again")):
        assert len(basic_charges(odometer, Nats.budget(15))) == 151
