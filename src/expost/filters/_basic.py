"""The basic filter: charge every query its worst case. The well-known baseline."""

from __future__ import annotations

from typing import ClassVar

from expost._types import Bools, Floats
from expost.filters._account import Account, WorstCase
from expost.filters._pure import PureFilter
from expost.queries import Query

__all__ = ["BasicFilter"]


class BasicFilter(PureFilter):
    r"""A filter by basic composition: the sum of the epsilons stays within the budget.

    .. math:: \sum_i \varepsilon_i \le \varepsilon_g

    Proof: docs/theory/filters.md.

    Args:
        epsilon: The budget in nats, exact as written.
        ratio: The budget as e^epsilon, instead of ``epsilon``.
        protects: What the budget is about: by default the person as a whole.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> bool(xp.BasicFilter(epsilon=2).decide(xp.Odometer(transcript), query))
    False
    """

    kind: ClassVar[str] = "basic"
    compares: ClassVar[str] = "the sum of all epsilons, including the next one"
    by_loss: ClassVar[bool] = False
    by_responses: ClassVar[bool] = False

    def current_case(self, account: Account) -> WorstCase:
        account = account.at_level(self.protects)
        return WorstCase(account.spent, exact=lambda: account.exact_spent)

    def cap_spent(self, lower: Floats, upper: Floats, accepted: Bools) -> Floats:
        return self.cap_accepted(lower, upper, accepted)

    def worst_case(self, account: Account, query: Query, times: int = 1) -> WorstCase:
        return account.at_level(self.protects).spent_after(query, times)
