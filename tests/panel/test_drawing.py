"""Draws of many are exact: every word leads where the exact uniform number lies."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

import expost as xp
from expost.panel._compiled_query import Drawing
from support import panel_cases


class Script:
    """A source whose numbers are known in advance, in words of 64 bits."""

    def __init__(self, words: list[int]) -> None:
        self.words = words

    def below(self, limit: int) -> int:
        count = (limit.bit_length() - 1) // 64
        assert limit == 1 << 64 * count
        taken, self.words = self.words[:count], self.words[count:]
        return sum(word << 64 * place for place, word in enumerate(taken))


@pytest.mark.parametrize("query", panel_cases.families(4, "0.7"), ids=lambda query: query.kind)
def test_words_at_the_border_of_two_responses_are_decided_exactly(query: xp.queries.Query) -> None:
    likelihood = query.on(xp.FiniteSet(range(4)))
    for place in range(4):
        pmf = likelihood.pmf(place)
        weights = [pmf.weight(position) for position in range(len(likelihood.responses))]
        ends = list(accumulate(weights))
        drawing = Drawing(likelihood)
        for end in ends[:6]:
            for more in (0, 1, 1 << 63, (1 << 64) - 1):
                for word in {max(0, (end << 64) // ends[-1] + step) for step in (-1, 0, 1)}:
                    if word >> 64:
                        continue
                    # More words than one are drawn only where one does not decide.
                    source = Script([word, more, more, more])
                    (drawn,) = drawing.positions(np.array([place]), source).tolist()
                    used = 4 - len(source.words)
                    number = sum(
                        Fraction(each, 1 << 64 * (i + 1))
                        for i, each in enumerate([word, more, more, more][:used])
                    )
                    least = ends[drawn] - weights[drawn]
                    assert Fraction(least, ends[-1]) <= number
                    assert number + Fraction(1, 1 << 64 * used) <= Fraction(ends[drawn], ends[-1])


def test_a_query_with_too_many_responses_for_a_table_is_drawn_from_its_pmf() -> None:
    domain = xp.FiniteSet(range(70))
    likelihood = xp.unary_encoding(epsilon=1).on(domain)
    source = xp.sampling.InsecureSource(1)
    drawn = Drawing(likelihood).positions(np.array([0, 69, 3]), source)
    assert all(0 <= position < 1 << 70 for position in drawn.tolist())
    panel = xp.Panel(domain, filter=xp.BayesianFilter(2), subjects=range(3), source=source)
    replies = panel.ask(xp.unary_encoding(epsilon=1), [0, 69, 3])
    assert {len(response) for response in replies.responses} == {70}
    assert panel.transcript(1).exchanges[0].response == replies.responses[1]


def test_values_of_one_class_draw_as_if_their_rows_were_written_out() -> None:
    rows = [["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"], ["1/10", "1/10", "4/5"]]
    of, places = [2, 0, 0, 1, 2], np.arange(5).repeat(500)
    domain = xp.FiniteSet(range(5))
    short, long = xp.channel(rows, of=of), xp.channel([rows[own] for own in of])
    drawn, expected = (
        Drawing(query.on(domain)).positions(places, xp.sampling.InsecureSource(2)).tolist()
        for query in (short, long)
    )
    assert drawn == expected


def test_many_responses_are_drawn_as_few_are() -> None:
    query, places = xp.unary_encoding(epsilon=1), np.arange(6).repeat(3000)
    likelihood = query.on(xp.FiniteSet(range(6)))
    drawn = Drawing(likelihood).positions(places, xp.sampling.InsecureSource(5))
    for place in range(6):
        seen = np.bincount(drawn[places == place], minlength=64) / 3000
        exact = [float(likelihood.pmf(place).probability(each)) for each in range(64)]
        assert np.abs(seen - exact).max() < 5 * np.sqrt(0.25 / 3000)
