"""ℓ over a box: a sum of functions of affine scores, whose extremes are searched for.

A search stops as soon as the budget is known to be kept or broken. What is found depends on the
tally, the query, the budget and the effort alone: terms go to the solver in an order of their own,
whatever the order of the responses. Proof: docs/theory/filters.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Any, ClassVar

from expost.domains import Box, Point
from expost.filters import WorstCase
from expost.loss.box_spreads import all_compared, found_points, glanced, spread
from expost.loss.extremes import Apart, apart_on_box
from expost.loss.shares import capped, part_of
from expost.loss.tallied import Tallied
from expost.numbers import Added, Enclosure, Nats, down
from expost.queries import Query
from expost.solver import Effort, root_work
from expost.terms import ScoreTerm
from expost.transcript import Exchange, Tally

__all__ = ["BoxLogLikelihood"]

# What doubles lose of a sum of epsilons is far less.
_SURELY = 1 - 1e-9
# Work that is done even where none is left.
_NO_MATTER = 4_000
_NODES_FOR_POINTS = 400

Entry = tuple[tuple[object, ...], ScoreTerm, int]
"""What a term is sorted by, the term, and how often it is there."""


@dataclass(frozen=True, eq=False)
class BoxLogLikelihood(Tallied[Box]):
    """ℓ over a box, as the terms that are summed."""

    searched: ClassVar[bool] = True
    different: ClassVar[int] = 0  # nothing but epsilons is summed exactly
    _ordered: list[Entry] | None = field(default=None, repr=False)
    """The terms in order, as far as they are known already."""

    @classmethod
    def flat(cls, domain: Box) -> BoxLogLikelihood:
        """Before anything is asked there is nothing to sum."""
        return cls(domain, Tally(), None)

    @classmethod
    def of(cls, domain: Box, exchanges: Iterable[Exchange]) -> BoxLogLikelihood:
        """ℓ of some exchanges."""
        return cls(domain, Tally.of(exchanges), None)

    def add(self, query: Query, position: int, times: int = 1) -> BoxLogLikelihood:
        tally, ordered = self.tally.plus(query, position, times), None
        if self._ordered is not None:
            ordered = self._ordered_with(query, position, times)
        return BoxLogLikelihood(self.domain, tally, self._charged_with(query, times), ordered)

    @property
    def terms(self) -> Counter[ScoreTerm]:
        """How often each term is there, in an order that depends on nothing but what they are."""
        return _counted(self._in_order())

    def _in_order(self) -> list[Entry]:
        if self._ordered is None:
            terms: dict[ScoreTerm, int] = {}
            for query, position, times in self.tally:
                term = self._term(query, position)
                terms[term] = terms.get(term, 0) + times
            entries = [(self._key(term), term, times) for term, times in terms.items()]
            entries.sort(key=itemgetter(0))
            object.__setattr__(self, "_ordered", entries)
            return entries
        return self._ordered

    def _ordered_with(self, query: Query, position: int, times: int) -> list[Entry]:
        entries, term = self._in_order().copy(), self._term(query, position)
        key = self._key(term)
        place = bisect_left(entries, key, key=itemgetter(0))
        if place < len(entries) and entries[place][0] == key:
            times += entries.pop(place)[2]
        entries.insert(place, (key, term, times))
        return entries

    def _key(self, term: ScoreTerm) -> tuple[object, ...]:
        """All that a term is, so that only equal ones tie; what tells most of them apart is first.

        Equal boxes may have their names in another order.
        """
        weights = self._by_name(term.weights)
        shape = term.epsilon, term.link, term.error, term.window, term.ruler
        return term.offset, weights, *shape

    @cached_property
    def _by_name(self) -> itemgetter[Any]:
        return itemgetter(*self.domain.order)

    def _term(self, query: Query, position: int) -> ScoreTerm:
        return query.on(self.domain).term(position)

    def epsilon_of(self, query: Query) -> Enclosure:
        return capped(query.on(self.domain).epsilon, query.ceiling(self.domain).enclosure)

    def loss(self, effort: Effort) -> Enclosure:
        return self._capped(spread(self.terms, self.domain, effort.with_work_limit()))

    def closest(self, effort: Effort) -> Enclosure:
        return self.loss(effort)

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        (loss,) = all_compared([self.terms], self.domain, limit, effort.with_work_limit())
        return self._capped(loss)

    def _capped(self, loss: Enclosure) -> Enclosure:
        """A loss that is surely below the sum of the epsilons needs no exact sum to say so."""
        about = math.fsum([term.epsilon * times for _, term, times in self._in_order()])
        if self._charged is None and loss.upper < _SURELY * about:
            return loss
        return capped(loss, self.spent)

    @property
    def exact_loss(self) -> Nats:
        raise AssertionError("over a box nothing is exact")

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        enough = self._sum_of_epsilons(query, times, budget)
        if enough is not None:
            return enough
        return self._after(query, times, budget.enclosure.lower, effort.for_decision())

    def plus_epsilon(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        enough = self._sum_of_epsilons(query, times, budget)
        if enough is not None:
            return enough
        epsilon, effort = self.epsilon_of(query), effort.for_decision()
        limit = down(budget.enclosure.lower - epsilon.upper)
        if times == 1:
            return WorstCase(self.loss_against(limit, effort) + epsilon)
        return WorstCase(self._after(query, times - 1, limit, effort).loss + epsilon)

    def _sum_of_epsilons(self, query: Query, times: int, budget: Nats) -> WorstCase | None:
        """The bound of basic composition, if that is enough; it costs no search."""
        charge = query.ceiling(self.domain)
        # An exact sum goes through the whole tally, and is seldom needed.
        sums = WorstCase(
            (self.charged + Added.of(charge) * times).enclosure,
            exact=lambda: self.exact_spent + charge * times,
        )
        if not sums.within(budget):
            return None
        most = budget.enclosure if sums.close(budget) else sums.loss
        return replace(sums, loss=Enclosure(0.0, min(sums.loss.upper, most.upper)))

    def _after(self, query: Query, times: int, limit: float, effort: Effort) -> WorstCase:
        """The realized loss after several more queries, at worst, against a limit."""
        # No response adds more than epsilon, and that often decides.
        epsilons = self.epsilon_of(query) * times
        far = down(limit - epsilons.upper)
        glance = self._capped(glanced(self.terms, self.domain, far, effort))
        simple = _at_most(glance, epsilons)
        if simple.upper <= limit:
            return WorstCase(simple)
        worst = self._after_some(query, times, limit, effort)
        if worst.loss.lower <= limit < worst.loss.upper and not effort.used_up:
            # What the Simplified filter accepts is accepted here too.
            simple = _at_most(self.loss_against(far, effort), epsilons)
        lower = max(worst.loss.lower, simple.lower)
        return replace(worst, loss=Enclosure(lower, min(worst.loss.upper, simple.upper)))

    def _after_some(self, query: Query, times: int, limit: float, effort: Effort) -> WorstCase:
        """The worst realized loss over the sufficient responses, each repeated ``times`` times.

        If there are too many of them, after a loud one: then there is no upper end.
        """
        likelihood = query.on(self.domain)
        most = self.spent + query.ceiling(self.domain).enclosure * times
        sufficient = likelihood.sufficient
        tried = likelihood.loudest if sufficient is None else sufficient
        after = [_counted(self._ordered_with(query, position, times)) for position in tried]
        found = all_compared(after, self.domain, limit, effort)
        losses = [capped(loss, most) for loss in found]
        for position, loss in zip(tried, losses, strict=True):
            if loss.lower > limit:
                # One response that breaks the budget is enough; others may be even worse.
                response = likelihood.responses[position]
                return WorstCase(Enclosure(loss.lower, math.inf), response=response)
        lower = max(loss.lower for loss in losses)
        if sufficient is None:
            return WorstCase(Enclosure(lower, math.inf))
        upper = max(loss.upper for loss in losses)
        worst = next(i for i, loss in zip(tried, losses, strict=True) if loss.upper == upper)
        return WorstCase(Enclosure(lower, upper), response=likelihood.responses[worst])

    def found(self, effort: Effort) -> tuple[Point, Point]:
        """The likeliest and the unlikeliest point that a short search finds."""
        given = effort.nodes is not None or effort.allowance is not None
        short = effort if given else effort.with_work_limit().sharing_nodes(_NODES_FOR_POINTS)
        return found_points(self.terms, self.domain, short)

    def most_apart(self, effort: Effort) -> Apart | None:
        # A search makes at least its first two nodes, whatever is left.
        if effort.used_up and root_work(len(self.terms), len(self.domain.columns)) > _NO_MATTER:
            return None
        return apart_on_box(self.tally, self.domain, *self.found(effort))

    def utilization(self, loss: Enclosure) -> Enclosure:
        return part_of(loss, self.exact_spent.enclosure)

    def utilization_of(self, query: Query) -> Enclosure:
        worst, quietest = self.epsilon_of(query), query.on(self.domain).quietest
        if quietest is None:
            return part_of(Enclosure(0.0, worst.upper), worst)
        alone, effort = BoxLogLikelihood.flat(self.domain), Effort(gap=1e-6)
        losses = [alone.add(query, position).loss(effort) for position in quietest]
        least = Enclosure(min(loss.lower for loss in losses), min(loss.upper for loss in losses))
        return part_of(least, worst)


def _at_most(loss: Enclosure, epsilons: Enclosure) -> Enclosure:
    """Bounds on the worst loss after some queries, from the loss now and their epsilons.

    It is at most the sum of the two, and at least their difference, whichever is larger.
    """
    lower = max(loss.lower, down(epsilons.lower - loss.upper))
    return Enclosure(lower, (loss + epsilons).upper)


def _counted(entries: Iterable[Entry]) -> Counter[ScoreTerm]:
    return Counter({term: times for _, term, times in entries})
