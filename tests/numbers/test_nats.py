"""Exact amounts of privacy and enclosures, against mpmath."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from expost.errors import InvalidInput
from expost.numbers import INFINITE, Enclosure, Nats, RunningSum, decimal_text, exact, scaled_exp
from expost.queries import two_weights
from support import oracles

rationals = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6)
ratios = st.fractions(min_value=Fraction(1, 10**9), max_value=10**9, max_denominator=10**9).filter(
    lambda q: q > 0
)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.3, Fraction(3, 10)),
        ("0.3", Fraction(3, 10)),
        ("3/10", Fraction(3, 10)),
        (Decimal("0.30"), Fraction(3, 10)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.float32(0.3), Fraction(3, 10)),
        ("1e-3", Fraction(1, 1000)),
        (4, Fraction(4)),
        (np.int64(4), Fraction(4)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_a_number_means_what_a_person_wrote(number: object, expected: Fraction) -> None:
    assert exact(number) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "number",
    [True, float("nan"), float("inf"), "nan", "inf", "1/0", "", "0x10", "1_000", "½", None, [1],
     "1e400", "1e-99999", "9" * 5000, 10**5000, "٣", " 0.3", 1 + 2j],
    ids=lambda number: type(number).__name__,
)  # fmt: skip
def test_what_is_not_a_finite_number_of_modest_size_is_refused(number: object) -> None:
    with pytest.raises(InvalidInput):
        exact(number)  # type: ignore[arg-type]


@given(st.fractions())
def test_decimal_text_is_exact(number: Fraction) -> None:
    assert Fraction(decimal_text(number)) == number


@pytest.mark.parametrize(
    "number",
    ["0." + "1" * 890, "1e-300", 1e300, Fraction(2**3000 - 1, 2**2999 + 1)],
    ids=["digits", "small", "large", "quotient"],
)
def test_a_number_with_many_digits_is_read_again_as_it_is_written(number: str | Fraction) -> None:
    assert exact(decimal_text(exact(number))) == exact(number)


def test_a_number_that_could_not_be_read_again_is_refused() -> None:
    for number in ("0." + "1" * 1500, Fraction(2**3001 - 1, 2**3001 + 1)):
        with pytest.raises(InvalidInput, match="has too many digits"):
            exact(number)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=6))
def test_decimals_are_written_as_decimals(number: Decimal) -> None:
    assert "/" not in decimal_text(Fraction(number))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3), Fraction(40)])
@pytest.mark.parametrize("distance", [30, 60, 200])
def test_rationals_next_to_e_to_the_epsilon_are_told_apart(
    epsilon: Fraction, distance: int
) -> None:
    scale = 10**distance
    with mpmath.workdps(distance + 50):
        below = Fraction(int(mpmath.floor(mpmath.exp(oracles._mpf(epsilon)) * scale)), scale)
    above = below + Fraction(1, scale)
    assert Nats(ratio=below) < Nats(epsilon) < Nats(ratio=above)
    assert not Nats(ratio=above) <= Nats(epsilon)


def test_three_tenths_are_exactly_three_times_one_tenth() -> None:
    assert Nats(Fraction(1, 10)) * 3 == Nats.budget("0.3")
    assert Nats(Fraction(1, 1000)) * 1000 <= Nats.budget(1)
    assert Nats(ratio=Fraction(3, 2)) * 2 == Nats.budget(ratio="9/4")


@given(rationals, ratios, rationals, ratios)
def test_the_order_of_amounts_is_that_of_the_real_numbers(
    r: Fraction, q: Fraction, s: Fraction, p: Fraction
) -> None:
    with mpmath.workdps(60):
        difference = oracles._mpf(r) + oracles.log(q) - oracles._mpf(s) - oracles.log(p)
    expected = r == s and q == p
    assert (Nats(r, q) == Nats(s, p)) is expected
    if not expected:
        assert (Nats(r, q) < Nats(s, p)) is bool(difference < 0)


@given(st.fractions(min_value=-50, max_value=50), ratios)
def test_an_enclosure_holds_the_amount_and_is_as_tight_as_doubles_allow(
    r: Fraction, q: Fraction
) -> None:
    enclosure = Nats(r, q).enclosure
    with mpmath.workdps(80):
        value = oracles._mpf(r) + oracles.log(q)
        assert enclosure.lower <= value <= enclosure.upper
    assert enclosure.upper <= math.nextafter(enclosure.lower, math.inf)


def test_infinity_is_above_everything_and_swallows_sums() -> None:
    assert Nats(Fraction(10**9)) < INFINITE
    assert Nats() + INFINITE == INFINITE == INFINITE * 3
    assert INFINITE.enclosure == Enclosure(math.inf, math.inf)


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=60), st.integers(0, 80))
def test_scaled_exp_is_the_floor(exponent: Fraction, bits: int) -> None:
    with mpmath.workdps(120):
        assert scaled_exp(exponent, bits) == int(
            mpmath.floor(mpmath.exp(oracles._mpf(exponent)) * mpmath.mpf(2) ** bits)
        )


@pytest.mark.parametrize("bits", [0, 1, 48, 500])
def test_scaled_exp_of_zero_is_a_power_of_two(bits: int) -> None:
    assert scaled_exp(Fraction(0), bits) == 2**bits


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=400).filter(bool))
def test_the_two_weights_stay_just_below_epsilon(epsilon: Fraction) -> None:
    heavy, light = two_weights(epsilon)
    assert Nats(ratio=Fraction(heavy, light)) <= Nats(epsilon)
    assert Nats(epsilon * (1 - Fraction(1, 2**40))) < Nats(ratio=Fraction(heavy, light))
    bits = light.bit_length() - 1
    assert light == 2**bits
    assert bits == 40 + max(0, math.ceil(mpmath.log(1 / mpmath.mpf(epsilon), 2)))


@given(st.fractions(min_value=Fraction(1, 1000), max_value=20), st.integers(1, 10**4))
def test_the_two_weights_of_a_step_are_those_of_its_share(epsilon: Fraction, steps: int) -> None:
    assert two_weights(epsilon, steps) == two_weights(epsilon / steps)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "give either"),
        ({"epsilon": 1, "ratio": 2}, "give either"),
        ({"epsilon": 0}, "greater than 0"),
        ({"epsilon": "-1"}, "greater than 0"),
        ({"epsilon": math.nan}, "finite"),
        ({"ratio": 1}, "greater than 1"),
    ],
)
def test_a_budget_is_positive_and_given_one_way(arguments: dict[str, float], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        Nats.budget(**arguments)


def test_enclosures_add_outward() -> None:
    total = Enclosure(0.1, 0.1) + Enclosure(0.2, 0.2)
    assert Fraction(0.1) + Fraction(0.2) in total
    assert total.lower < total.upper
    with pytest.raises(ValueError, match="lower <= upper"):
        Enclosure(math.nan, 1.0)


def test_ratios_next_to_one_are_handled() -> None:
    near = Nats(ratio=1 + Fraction(1, 10**50))
    assert Nats() < near < Nats(Fraction(1, 10**49))
    assert 0 < near.enclosure.lower <= 1e-50 <= near.enclosure.upper


def test_infinite_ends_stay_infinite() -> None:
    assert Enclosure(1.0, 1.0) + INFINITE.enclosure == INFINITE.enclosure


@given(st.floats(0, 1e6), st.integers(1, 10**6))
def test_a_multiple_is_enclosed(x: float, times: int) -> None:
    assert Fraction(x) * times in Enclosure(x, x) * times


def test_multiples_of_nothing_and_of_infinity_are_exact() -> None:
    assert Enclosure(0.0, 0.0) * 7 == Enclosure(0.0, 0.0)
    assert INFINITE.enclosure * 7 == INFINITE.enclosure
    assert Enclosure(0.1, 0.2) * 1 == Enclosure(0.1, 0.2)


def test_a_sum_of_amounts_is_as_tight_as_one_amount() -> None:
    tenth = RunningSum.of(Nats(Fraction(1, 10)))
    total = sum([tenth] * 10, start=RunningSum())
    assert total.enclosure == (tenth * 10).enclosure == Enclosure(1.0, 1.0)
    assert (total + tenth * 3).enclosure == Nats(Fraction(13, 10)).enclosure


@given(st.lists(st.tuples(st.fractions(0, 5), st.sampled_from([1, 2, 9])), max_size=12))
def test_a_sum_of_amounts_contains_the_exact_one(parts: list[tuple[Fraction, int]]) -> None:
    amounts = [Nats(rational, Fraction(ratio)) for rational, ratio in parts]
    exact = sum(amounts, start=Nats())
    running = sum(map(RunningSum.of, amounts), start=RunningSum())
    assert running.enclosure.lower <= exact.enclosure.lower
    assert exact.enclosure.upper <= running.enclosure.upper
    assert running.exact.denominator <= 1 << 64
