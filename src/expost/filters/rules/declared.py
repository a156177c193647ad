"""The rule for a plan: at most how many queries of each epsilon there will be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar

from expost.domains import Domain
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.reading import members, read_integer, read_list
from expost.filters.rules._martingale import read_reserve
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total
from expost.numbers import (
    DECIMAL_ERROR,
    Enclosure,
    ExactLike,
    Nats,
    decimal_text,
    enclose_decimal,
    fifty_digits,
    positive,
    quotient,
)
from expost.queries import LARGEST_EPSILON, Query, read_delta

__all__ = ["Declared"]

_MOST_QUERIES = 100_000
_MOST_OUTCOMES = 1_000_000

#: Pairs of an epsilon and the most queries of it, ordered by epsilon.
Plan = tuple[tuple[Fraction, int], ...]

# Far above the relative error of a chain of that many operations with 50 digits each.
_SLIP = Decimal("1e-40")


@dataclass(frozen=True, slots=True, repr=False)
class Declared(Rule):
    r"""Compose a declared plan exactly: at most so many queries of each epsilon, in any order.

    For a plan of :math:`n_j` queries of :math:`\varepsilon_j`, let :math:`L` be the sum of the
    log-ratios of that many randomized responses. Accept what is within the plan if

    .. math:: E\left[\left(1 - e^{\varepsilon_g - L}\right)_+\right] \le \delta ,

    or while the epsilons add up to at most the budget. A query uses the smallest unused entry
    of the plan that is large enough for it. The analyst chooses the order, and may stop early, by
    the responses; an undeclared query is outside of the plan. No rule accepts a larger plan.
    Proof: docs/theory/approximate.md.

    >>> from expost.filters.rules import Declared
    >>> Declared({"0.1": 60, "0.2": 14})
    Declared(60 of 0.1, 14 of 0.2)
    """

    kind: ClassVar[str] = "declared"
    plan: Plan
    delta_prime: Fraction | None

    def __init__(self, plan: Mapping[Any, int], *, delta_prime: ExactLike | None = None) -> None:
        with at("plan"):
            expect(plan, Mapping, 'numbers of queries by epsilon, such as {"0.1": 100}')
            object.__setattr__(self, "plan", _plan(map(_plan_entry, plan.keys(), plan.values())))
        object.__setattr__(self, "delta_prime", read_reserve(delta_prime))

    @classmethod
    def most(cls, epsilon: ExactLike, delta: ExactLike, query_epsilon: ExactLike) -> Declared:
        """Return the plan with the most queries of one epsilon that a budget allows.

        Args:
            epsilon: The budget.
            delta: The delta of the budget.
            query_epsilon: The epsilon of every query.

        >>> Declared.most(epsilon="5.08", delta="1e-6", query_epsilon="0.1")
        Declared(111 of 0.1)
        """
        budget, share = Nats.budget(epsilon), read_delta(delta)

        def fits(times: int) -> bool:
            return Nats(Fraction(_cost(_plan([(level, times)]), share).upper)) <= budget

        with at("query_epsilon"):
            level = positive(query_epsilon, at_most=LARGEST_EPSILON)
            if not fits(1):
                raise InvalidInput("exceeds the budget")
        low, high = 1, 2
        while high <= _MOST_QUERIES and fits(high):
            low, high = high, 2 * high
        high = min(high, _MOST_QUERIES + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return cls({query_epsilon: low})

    def __repr__(self) -> str:
        parts = ", ".join(f"{times} of {decimal_text(epsilon)}" for epsilon, times in self.plan)
        reserve = self.delta_prime
        shown = "" if reserve is None else f"; delta_prime={decimal_text(reserve)}"
        return f"Declared({parts}{shown})"

    def tree(self) -> dict[str, Any]:
        plan = [{"epsilon": epsilon, "times": times} for epsilon, times in self.plan]
        tree: dict[str, Any] = {"plan": plan}
        return tree if self.delta_prime is None else {**tree, "delta_prime": self.delta_prime}

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Declared:
        fields = members(fields, required=("plan",), optional=("delta_prime",))
        result = object.__new__(cls)
        with at("plan"):
            object.__setattr__(
                result, "plan", _plan(read_list(fields["plan"], _plan_entry_from_json))
            )
        reserve = read_delta(fields["delta_prime"], "delta_prime") if len(fields) > 1 else None
        object.__setattr__(result, "delta_prime", reserve)
        return result

    def allowance(self, delta: Fraction) -> Fraction:
        return Fraction(0) if self.delta_prime is None else delta - self.delta_prime

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        # Whether the plan has an entry for each query depends on the counts above each level.
        charge, _ = self.charge(query, domain)
        levels = (Fraction(0), *(epsilon for epsilon, _ in self.plan))
        above = [charge > Nats(level) for level in levels]
        return [math.inf if above[-1] else float(needs_more) for needs_more in above[:-1]]

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        capacities = accumulate(times for _, times in reversed(self.plan))
        for needed, capacity in zip(reversed(total.amounts), capacities, strict=False):
            if needed > capacity:
                return UNAFFORDABLE
        return _cost(self.plan, self.delta_prime or delta)


def _plan_entry(epsilon: ExactLike, times: Any) -> tuple[Fraction, int]:
    level = read_at("epsilon", positive, epsilon, at_most=LARGEST_EPSILON)
    with at("times"):
        count = read_integer(times, at_least=1)
        if count > _MOST_QUERIES:
            raise InvalidInput(f"must be at most {_MOST_QUERIES:,}, not {count:,}")
    return level, count


def _plan_entry_from_json(entry: Any) -> tuple[Fraction, int]:
    fields = members(entry, required=("epsilon", "times"))
    return _plan_entry(fields["epsilon"], fields["times"])


def _plan(entries: Iterable[tuple[Fraction, int]]) -> Plan:
    """Merge the entries of each epsilon, and sort them."""
    counts: Counter[Fraction] = Counter()
    for epsilon, times in entries:
        counts[epsilon] += times
    if not counts:
        raise InvalidInput("has no queries")
    if math.prod(times + 1 for times in counts.values()) > _MOST_OUTCOMES:
        raise InvalidInput(f"has more than {_MOST_OUTCOMES:,} outcomes; declare fewer epsilons")
    return tuple(sorted(counts.items()))


@lru_cache
def _cost(plan: Plan, delta: Fraction) -> Enclosure:
    r"""Enclose the least budget at which a plan respects delta.

    With :math:`A_t` and :math:`B_t` the probabilities of :math:`L \ge t` under two
    values, it is :math:`\max_t \log((A_t - \delta)/B_t)`, or 0 if that is negative.
    """
    least = most = Decimal(1)
    with fifty_digits():
        share = quotient(delta)
        for above, other in _tails(plan):
            least = max(least, (above * (1 - _SLIP) - share) / (other * (1 + _SLIP)))
            most = max(most, (above * (1 + _SLIP) - share) / (other * (1 - _SLIP)))
        lower, upper = least.ln(), most.ln()
    below = enclose_decimal(lower, DECIMAL_ERROR * (1 + Fraction(lower))).lower
    return Enclosure(below, enclose_decimal(upper, DECIMAL_ERROR * (1 + Fraction(upper))).upper)


def _tails(plan: Plan) -> Iterable[tuple[Decimal, Decimal]]:
    """Return the probabilities that L is at least each of its values, given either value."""
    # Sums of epsilons are integers over their common denominator.
    scale = math.lcm(*(epsilon.denominator for epsilon, _ in plan))
    law = {0: Decimal(1)}
    for epsilon, times in plan:
        law = _convolve(law, _binomial(epsilon, times, int(epsilon * scale)))
    values = sorted(law, reverse=True)
    # The law of -L under the second value is that of L under the first.
    above, other = (law[value] for value in values), (law[-value] for value in values)
    return zip(accumulate(above), accumulate(other), strict=True)


def _binomial(epsilon: Fraction, times: int, step: int) -> dict[int, Decimal]:
    """Return the law of the sum of the log-ratios of randomized responses of one epsilon."""
    odds = quotient(epsilon).exp()
    share = (1 / (1 + odds)) ** times
    law = {}
    for right in range(times + 1):
        law[step * (2 * right - times)] = share
        share = share * (times - right) * odds / (right + 1)
    return law


def _convolve(first: dict[int, Decimal], second: dict[int, Decimal]) -> dict[int, Decimal]:
    """Return the law of the sum of two independent variables."""
    law: dict[int, Decimal] = {}
    for value, share in first.items():
        for other, chance in second.items():
            law[value + other] = law.get(value + other, 0) + share * chance
    return law
