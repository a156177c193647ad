"""Sums that are not written out: compared as if they were, and much faster."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost.numbers import Nats, scaled_exp
from expost.numbers._doubles import near_exp
from expost.numbers._exact_sum import _PRIME, ExactSum
from support import oracles

bases = st.integers(1, 60)
products = st.dictionaries(bases, st.integers(-4, 4), max_size=6).map(Counter)
rationals = st.lists(st.fractions(-3, 3, max_denominator=30), max_size=4)


def written_out(powers: Counter[int]) -> Fraction:
    return math.prod((Fraction(base) ** power for base, power in powers.items()), start=Fraction(1))


@given(products, rationals, products, rationals)
def test_sums_are_ordered_as_what_they_stand_for(
    first: Counter[int], some: list[Fraction], second: Counter[int], others: list[Fraction]
) -> None:
    amount, other = (
        Nats.total([(Nats(rational), 1) for rational in given]) + Nats.of(ExactSum.product(powers))
        for powers, given in ((first, some), (second, others))
    )
    plain = Nats(sum(some, Fraction(0)), written_out(first))
    assert amount == plain
    assert hash(amount) == hash(plain)
    assert amount.enclosure == plain.enclosure
    assert (amount.rational, amount.ratio) == (plain.rational, plain.ratio)
    equal = plain == Nats(sum(others, Fraction(0)), written_out(second))
    assert (amount == other) is equal
    with mpmath.workdps(60):
        difference = oracles.log(written_out(first)) - oracles.log(written_out(second))
        difference += oracles._mpf(sum(some, Fraction(0)) - sum(others, Fraction(0)))
    if not equal:
        assert (amount < other) is bool(difference < 0)


def test_a_product_of_millions_of_digits_is_compared_by_thirty() -> None:
    heavy, light = 3**40, 2**60
    long = Nats.of(ExactSum.product(Counter({heavy: 10**9, light: -(10**9)})))
    expected = 10**9 * (40 * math.log(3) - 60 * math.log(2))
    assert long.enclosure.lower == pytest.approx(expected)
    assert long.enclosure.upper <= math.nextafter(long.enclosure.lower, math.inf)
    assert Nats() < long < Nats(Fraction(expected) + 1)


def test_one_in_disguise_is_one() -> None:
    for power in (1, 7, 100_000):
        disguised = Nats.of(ExactSum.product(Counter({6: power, 2: -power, 3: -power})))
        assert disguised == Nats()
        assert disguised.is_rational
        assert str(disguised.enclosure.upper) == "0.0"
        assert Nats(Fraction(1, 3)) + disguised == Nats(Fraction(1, 3))
        assert not disguised < Nats()


def test_numbers_that_the_prime_divides_are_compared_too() -> None:
    third = Nats(Fraction(1, _PRIME)) + Nats(Fraction(_PRIME - 1, _PRIME))
    assert third == Nats(Fraction(1))
    assert hash(third) == hash(Nats(Fraction(1)))
    assert Nats(ratio=Fraction(_PRIME)) != Nats(ratio=Fraction(2 * _PRIME))
    same = Nats.of(ExactSum.product(Counter({2 * _PRIME: 1, _PRIME: -1})))
    assert same == Nats(ratio=Fraction(2))
    assert hash(same) == hash(Nats(ratio=Fraction(2)))


@given(
    st.fractions(-700, 700).filter(bool) | st.fractions(Fraction(-1, 10**9), Fraction(1, 10**9)),
    st.sampled_from([0, 1, 40, 64, 170, 900]),
)
def test_an_exponential_in_integers_is_the_floor(exponent: Fraction, bits: int) -> None:
    if exponent:
        with mpmath.workdps(700):
            real = mpmath.exp(oracles._mpf(exponent)) * mpmath.mpf(2) ** bits
            assert near_exp(exponent, bits) in (None, int(mpmath.floor(real)))


def test_an_exponential_next_to_an_integer_is_left_to_more_digits() -> None:
    # e^x is above one by 2^-200: sixty-four bits more than none do not tell.
    assert near_exp(Fraction(1, 2**200), 0) is None
    assert near_exp(Fraction(1, 2**200), 199) == 2**199
    assert scaled_exp(Fraction(1, 2**200), 0) == 1
