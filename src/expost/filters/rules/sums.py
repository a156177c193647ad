"""Basic composition: sums of epsilons and of deltas, compared exactly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from expost.domains import Domain
from expost.filters.rules._rule import UNAFFORDABLE, Rule, Total
from expost.numbers import Enclosure
from expost.queries import Query

__all__ = ["Sums"]


@dataclass(frozen=True, slots=True)
class Sums(Rule):
    r"""Basic composition (Dwork et al. 2006; adaptive: Rogers et al. 2016, Theorem 3.6).

    .. math:: \sum_i \varepsilon_i \le \varepsilon_g, \quad \sum_i \delta_i \le \delta_g

    Both sums are exact: ten queries of 0.1 fit into a budget of 1. Proof:
    docs/theory/approximate.md.

    >>> import expost as xp
    >>> from expost.filters.rules import Sums
    >>> price = Sums().price(xp.randomized_response(epsilon="0.1"), xp.FiniteSet(["no", "yes"]))
    >>> (price * 10).epsilon.exact == 1
    True
    """

    kind: ClassVar[str] = "basic"

    def amounts(self, query: Query, domain: Domain) -> Iterable[float]:
        return ()

    def cost(self, total: Total, delta: Fraction) -> Enclosure:
        return UNAFFORDABLE  # there is no formula besides the sums
