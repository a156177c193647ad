"""Decisions of ``device.py``, against exact oracles."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from expost.device.device import Account, Domain, Filter, Query, decide, is_within, parse
from support.oracles import at_most


def test_a_logarithm_is_compared_exactly_on_both_sides_of_zero() -> None:
    random = Random(1)
    for _ in range(2000):
        top, bottom = (random.getrandbits(random.randint(1, 60)) + 1 for _ in range(2))
        quotient = Fraction(top, bottom)
        logarithm = Fraction(top.bit_length() - bottom.bit_length()) * Fraction(69, 100)
        limit = logarithm + Fraction(random.randint(-200, 200), 100)
        assert is_within(top, bottom, limit) == at_most(quotient, epsilon=limit, limit=None)


def test_a_sum_of_epsilons_stays_within_a_ratio() -> None:
    # ln(32768/1023) is 3.4667; 3.49 is above it, by less than log 2 differs from 7/10.
    domain = Domain(parse('{"values": ["no", "yes"]}'))
    guard = Filter.read(parse('{"kind": "basic", "ratio": "32768/1023"}'))
    account = Account(domain)
    for epsilon, accepted in [("3.46", True), ("3.467", False), ("3.49", False)]:
        tree = f'{{"kind": "randomized_response", "epsilon": "{epsilon}"}}'
        compiled = account.compiled(Query.read(parse(tree)))
        assert decide(guard, account, compiled) is accepted
