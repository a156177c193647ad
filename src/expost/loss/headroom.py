"""How much room is surely left below a budget, from one search to the next.

No exchange changes the loss by more than its epsilon. So a search that finds the loss far below the
budget decides many exchanges to come, and a long transcript is replayed by few of them.
"""

from __future__ import annotations

from dataclasses import replace

from expost.filters import Filter
from expost.loss.odometer import Odometer
from expost.numbers import down, up
from expost.queries import Query

__all__ = ["Headroom"]

_GLANCE = 16
_AHEAD = 16
_LONGEST_WAIT = 64


class Headroom:
    """What bounds the loss of a replay so far, for a filter that compares the loss with a budget.

    Proof: docs/theory/filters.md.
    """

    def __init__(self, filter_: Filter) -> None:
        self._budget = filter_.budget.enclosure
        self._most = 0.0
        self._wait = 0
        self._patience = 1

    def fits(self, odometer: Odometer, query: Query) -> bool:
        """Whether the loss so far and the epsilon of a query are surely within the budget."""
        charge = query.ceiling(odometer.domain).enclosure.upper
        if up(self._most + charge) <= self._budget.lower:
            return True
        if self._wait or odometer.effort.used_up:
            self._wait = max(0, self._wait - 1)
            return False
        # A glance is enough to see that the budget is far away; near to it, it seldom is.
        effort = replace(odometer.effort, nodes=min(_GLANCE, odometer.effort.node_limit))
        far = down(self._budget.lower - _AHEAD * charge)
        self._most = min(self._most, odometer.with_effort(effort).loss_against(far).upper)
        fits = up(self._most + charge) <= self._budget.lower
        self._patience = 1 if fits else min(2 * self._patience, _LONGEST_WAIT)
        self._wait = 0 if fits else self._patience
        return fits

    def answered(self, query: Query, odometer: Odometer, *, accepted: bool) -> None:
        """An exchange more; what a pure filter accepts ends within the budget."""
        self._most = up(self._most + query.ceiling(odometer.domain).enclosure.upper)
        if accepted:
            self._most = min(self._most, self._budget.upper)
