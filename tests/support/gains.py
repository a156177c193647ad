"""Gain functions and beliefs, drawn at random and written out from their definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

import expost as xp
from expost import leakage
from expost.knowledge.belief import Belief

Vector = Sequence[Fraction]


Matrix = list[list[Fraction]]


def gains_of(gain: leakage.Gain, size: int) -> Matrix:
    """A gain function on 0, 1, … written out from its definition: a row per guess."""
    values = range(size)
    if isinstance(gain, leakage.Identity):
        return [[Fraction(w == x) for x in values] for w in values]
    if isinstance(gain, leakage.Tries):
        sets = itertools.combinations(values, min(gain.count, size))
        return [[Fraction(x in guess) for x in values] for guess in sets]
    if isinstance(gain, leakage.Property):
        kinds = set(gain.labels)
        return [[Fraction(label == kind) for label in gain.labels] for kind in kinds]
    if isinstance(gain, leakage.Nearness):
        reach = Fraction(str(gain.reach))
        return [[max(Fraction(0), 1 - abs(w - x) / reach) for x in values] for w in values]
    assert isinstance(gain, leakage.GainMatrix)
    return [[Fraction(str(entry)) for entry in row] for row in gain.rows]


def gain_functions(size: int) -> st.SearchStrategy[leakage.Gain]:
    entry = st.integers(0, 10).map(lambda n: Fraction(n, 10))
    row = st.lists(entry, min_size=size, max_size=size)
    return st.one_of(
        st.just(leakage.Identity()),
        st.integers(1, size + 1).map(leakage.Tries),
        st.lists(st.integers(0, 2), min_size=size, max_size=size).map(leakage.Property),
        st.fractions(min_value="1/2", max_value=6, max_denominator=6).map(leakage.Nearness),
        st.lists(row, min_size=1, max_size=4).map(leakage.GainMatrix),
    )


def beliefs(domain: xp.FiniteSet, *, zeros: bool = True) -> st.SearchStrategy[Belief]:
    count = st.integers(0 if zeros else 1, 9)
    counts = st.lists(count, min_size=len(domain), max_size=len(domain)).filter(any)
    return counts.map(lambda numbers: Belief.from_counts(domain, numbers))
