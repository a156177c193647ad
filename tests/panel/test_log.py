"""Who answered what: how often, whoever answered and however many responses there are."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

import expost as xp
from expost.panel._compiled_query import QueryRegistry
from expost.panel._log import ResponseLog
from expost.panel._selection import Selection


@pytest.mark.parametrize("values", [2, 8, 40, 300])
def test_a_tally_is_what_counting_one_subject_after_the_other_finds(values: int) -> None:
    generator, subjects = random.Random(values), 150
    questions = QueryRegistry(xp.FiniteSet(range(values)))
    asked = [questions.of(xp.randomized_response(epsilon=each)) for each in ("0.1", "0.2")]
    log = ResponseLog()
    counts: dict[int, Counter[tuple[int, int]]] = {who: Counter() for who in range(subjects)}
    for _ in range(80):
        question = generator.choice(asked)
        share = generator.choice([0.02, 0.5, 1.0])
        who = [place for place in range(subjects) if generator.random() < share]
        # Few responses at first, so that there are more of them later than a byte can name.
        most = min(values, 3 + 10 * len(log.rounds))
        given = [generator.randrange(most) for _ in who]
        places = None if len(who) == subjects else np.array(who, dtype=np.intp)
        codes = question.codes(np.array(given, dtype=np.intp))
        log.add(question, codes, Selection(subjects, places))
        for place, position in zip(who, given, strict=True):
            counts[place][question.index, position] += 1
        few = sorted(generator.sample(range(subjects), 5))
        _check(log, few, counts)  # also while it grows
    _check(log, sorted(generator.sample(range(subjects), 100)), counts)


def _check(
    log: ResponseLog, places: list[int], counts: dict[int, Counter[tuple[int, int]]]
) -> None:
    tallies = log.tallies(np.array(places, dtype=np.intp))
    for column, place in enumerate(places):
        found = {
            (question.index, question.positions[code]): int(count)
            for question, tally in tallies.items()
            for code, count in enumerate(tally[:, column])
            if count
        }
        assert found == counts[place]
        exchanges = log.exchanges(place)
        assert Counter((each.index, position) for each, position in exchanges) == counts[place]


def test_more_rounds_than_a_byte_counts() -> None:
    questions = QueryRegistry(xp.FiniteSet(["no", "yes"]))
    question, log = questions.of(xp.randomized_response(epsilon="0.1")), ResponseLog()
    for step in range(600):
        log.add(question, question.codes(np.array([0, step % 2])), Selection(2))
    (tally,) = log.tallies(np.arange(2)).values()
    assert tally.tolist() == [[600, 300], [0, 300]]
