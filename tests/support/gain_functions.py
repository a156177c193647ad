"""Gain functions and beliefs, drawn at random and written out from their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

import expost as xp
from expost import knowledge
from expost.knowledge import Belief

Vector = Sequence[Fraction]


Matrix = list[list[Fraction]]


def gains_of(gain: knowledge.GainFunction, size: int) -> Matrix:
    """A gain function on 0, 1, … written out from its definition: a row per guess."""
    values = range(size)
    if isinstance(gain, knowledge.Identity):
        return [[Fraction(w == x) for x in values] for w in values]
    if isinstance(gain, knowledge.Tries):
        sets = itertools.combinations(values, min(gain.count, size))
        return [[Fraction(x in guess) for x in values] for guess in sets]
    if isinstance(gain, knowledge.Property):
        kinds = set(gain.labels)
        return [[Fraction(label == kind) for label in gain.labels] for kind in kinds]
    if isinstance(gain, knowledge.Nearness):
        reach = Fraction(str(gain.reach))
        return [[max(Fraction(0), 1 - abs(w - x) / reach) for x in values] for w in values]
    assert isinstance(gain, knowledge.GainMatrix)
    return [[Fraction(str(entry)) for entry in row] for row in gain.rows]


def gain_functions(size: int) -> st.SearchStrategy[knowledge.GainFunction]:
    entry = st.integers(0, 10).map(lambda n: Fraction(n, 10))
    row = st.lists(entry, min_size=size, max_size=size)
    return st.one_of(
        st.just(knowledge.Identity()),
        st.integers(1, size + 1).map(knowledge.Tries),
        st.lists(st.integers(0, 2), min_size=size, max_size=size).map(knowledge.Property),
        st.fractions(min_value="1/2", max_value=6, max_denominator=6).map(knowledge.Nearness),
        st.lists(row, min_size=1, max_size=4).map(knowledge.GainMatrix),
    )


def beliefs(domain: xp.FiniteSet, *, zeros: bool = True) -> st.SearchStrategy[Belief]:
    count = st.integers(0 if zeros else 1, 9)
    counts = st.lists(count, min_size=len(domain), max_size=len(domain)).filter(any)
    return counts.map(lambda numbers: Belief.from_counts(domain, numbers))
