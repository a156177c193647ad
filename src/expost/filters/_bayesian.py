"""The Bayesian filter: no response of the query may push the realized loss over the budget."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, final

from expost.filters._account import Account, WorstCase
from expost.filters._filter import fits_by_its_epsilon
from expost.filters._pure import PureFilter
from expost.numbers import decimal_text
from expost.queries import LARGEST_EPSILON, Query

__all__ = ["BayesianFilter"]

_STEP = Fraction(1, 10**10)
# A saturating query can be made if its cap is so much above the loss: docs/theory/saturating.md.
_MARGIN = Fraction(1, 1 << 20)
_LEAST_CAP = Fraction(1, 10**4)


@final
class BayesianFilter(PureFilter):
    r"""A filter by the realized loss after each possible response (paper, Algorithm 2).

    .. math:: \max_{x, x'} \ell(x) - \ell(x') + D(x, x') \le \varepsilon_g, \quad
              D(x, x') = \max_y \log \frac{P[y \mid x]}{P[y \mid x']}

    It is the filter to start with: the guarantee is pure ε-LDP, as with :class:`BasicFilter`, and
    a budget lasts longer. Proof: docs/theory/filters.md.

    Args:
        epsilon: The budget in nats, exact as written.
        ratio: The budget as e^epsilon, instead of ``epsilon``.
        protects: What the budget is about: by default the person as a whole.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> decision = xp.BayesianFilter(epsilon=2).decide(xp.Odometer(transcript), query)
    >>> decision.accepted, round(decision.loss_at_worst.upper, 6)
    (True, 1.0)
    """

    kind: ClassVar[str] = "bayesian"
    compares: ClassVar[str] = "the largest loss that the next response can lead to"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.at_level(self.protects).worst_after(query, times, self.budget)

    def largest_cap(self, account: Account) -> Decimal | None:
        budget = Fraction(self.budget.enclosure.lower)
        cap = min(Fraction(math.floor(budget / _STEP)) * _STEP, Fraction(LARGEST_EPSILON))
        if (
            self.is_at_level
            or account.searched
            or cap < _LEAST_CAP
            or account.loss.upper > cap - _MARGIN
        ):
            return None
        return Decimal(decimal_text(cap))

    def surely_accepts(self, account: Account, query: Query) -> bool:
        return fits_by_its_epsilon(self.budget, account.at_level(self.protects), query)
