"""Products of powers that are kept as exponents."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from expost.loss._exponents import Packing, sign_of

BASES = (2, 3, 10**25, 10**25 + 1, 6)
powers = st.dictionaries(st.sampled_from(BASES), st.integers(-6, 6)).map(Counter)
wide = st.dictionaries(st.sampled_from(BASES), st.integers(0, 2**40)).map(Counter)


def product(exponents: Counter[int]) -> Fraction:
    return prod((Fraction(base) ** power for base, power in exponents.items()), start=Fraction(1))


@given(powers)
def test_a_product_is_on_the_side_of_one_that_it_is_on(exponents: Counter[int]) -> None:
    value = product(exponents)
    assert sign_of(exponents) == (value > 1) - (value < 1)


@given(st.lists(wide, min_size=1, max_size=5))
def test_adding_codes_adds_all_exponents(parts: list[Counter[int]]) -> None:
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part)
    packing = Packing(total)
    codes = np.array([packing.code(part) for part in parts], dtype=np.int64)
    assert packing.powers(codes.sum(axis=0).tolist()) == total


@given(st.lists(st.dictionaries(st.sampled_from(BASES), st.integers(0, 6)), min_size=1))
def test_the_best_of_some_codes_is_the_largest_or_the_smallest_product(
    many: list[dict[int, int]],
) -> None:
    packing = Packing(dict.fromkeys(BASES, 6))
    products = packing.products(np.array([packing.code(each) for each in many]).T)
    values = [product(Counter(each)) for each in many]
    assert values[products.best(range(len(many)), 1)] == max(values)
    assert values[products.best(range(len(many)), -1)] == min(values)
