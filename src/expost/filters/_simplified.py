"""The Simplified Bayesian filter: the realized loss so far plus the query's worst case."""

from __future__ import annotations

from typing import ClassVar, final

from expost.filters._account import Account, WorstCase
from expost.filters._filter import fits_by_its_epsilon
from expost.filters._pure import PureFilter
from expost.queries import Query

__all__ = ["SimplifiedFilter"]


@final
class SimplifiedFilter(PureFilter):
    r"""A filter by the realized loss plus the epsilon of the query (paper, Algorithm 3).

    .. math:: \max_x \ell(x) - \min_x \ell(x) + \varepsilon \le \varepsilon_g

    It is cheaper than :class:`BayesianFilter` and accepts no more. Proof: docs/theory/filters.md.

    Args:
        epsilon: The budget in nats, exact as written.
        ratio: The budget as e^epsilon, instead of ``epsilon``.
        protects: What the budget is about: by default the person as a whole.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> bool(xp.SimplifiedFilter(epsilon=2).decide(xp.Odometer(transcript), query))
    True
    """

    kind: ClassVar[str] = "simplified"
    compares: ClassVar[str] = "the loss so far plus the next epsilon"

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.at_level(self.protects).plus_epsilon(query, times, self.budget)

    def surely_accepts(self, account: Account, query: Query) -> bool:
        return fits_by_its_epsilon(self.budget, account.at_level(self.protects), query)
