"""ℓ over a box: a sum of functions of affine scores, whose extremes are searched for.

A search stops as soon as the budget is known to be respected or broken. The result depends on
the tally, the query, the budget and the effort alone: terms go to the solver in an order of their
own, whatever the order of the responses. Proof: docs/theory/filters.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from expost.domains import Box, Point
from expost.filters import WorstCase
from expost.loss._log_likelihood import ExtremePair, LogLikelihood, cap_loss, capped_share
from expost.numbers import Enclosure, Nats, RunningSum, blocks, down, up
from expost.queries import BoxLikelihood, Query
from expost.solver import Effort, root_work
from expost.tally import Tally
from expost.terms import ScoreTerm
from expost.transcript import Exchange

if TYPE_CHECKING:
    from expost.solver import BoxSpread

__all__ = [
    "BoxLogLikelihood",
    "all_compared",
    "apart_on_box",
    "exact_ratio",
    "found_points",
    "quick_bound",
    "spread",
]


# It is a courtesy, and takes a pass over all terms for each coordinate.
_MOST_WORK = 100_000

_ANY = 10

#: Responses by their positions, and how often each was given.
ResponseCounts = list[tuple[BoxLikelihood, int, int]]


def exact_ratio(tally: Tally, box: Box, above: Point, below: Point) -> Fraction:
    """Return the exact ratio of the likelihoods at two points of a box."""
    ratio = Fraction(1)
    for likelihood, position, times in _response_counts(tally, box):
        high, low = (likelihood.pmf(point).weight(position) for point in (above, below))
        ratio *= Fraction(high, low) ** times
    return ratio


def apart_on_box(tally: Tally, box: Box, above: Point, below: Point) -> ExtremePair | None:
    """Return two points as values of a box; None if no response distinguishes them."""
    counts = _response_counts(tally, box)
    high, low = _logs(counts, above, below)
    if not high > low:
        return None
    work = len(counts) * (_ANY + len(box.columns))
    for columns in box.column_slices[: _MOST_WORK // max(1, work)]:
        # Coordinates that make no difference get the same value in both.
        closer = tuple(above[j] if j in columns else x for j, x in enumerate(below))
        (log,) = _logs(counts, closer)
        if log <= low:
            below, low = closer, log
    return ExtremePair(box.value(above), box.value(below), high - low, None, example=True)


def _response_counts(tally: Tally, box: Box) -> ResponseCounts:
    return [(part.query.on(box), part.position, part.times) for part in tally.summands]


def _logs(counts: ResponseCounts, *points: Point) -> list[float]:
    """Return the log-likelihoods of points, up to a constant."""
    columns = [np.array(column, dtype=float) for column in zip(*points, strict=True)]
    logs = [times * likelihood.logs(position, columns) for likelihood, position, times in counts]
    return [math.fsum(column) for column in np.array(logs).reshape(-1, len(points)).T.tolist()]


_GROUP = 10

_GLANCE = 16

_STAGES = (_GLANCE, 128)

#: The share of the remaining work for all terms together; the rest is for groups, if they help.
_MOST_AT_ONCE = 0.8

_ANYTHING = Enclosure(0.0, math.inf)

#: How often each term occurs, in a canonical order: within its gap, a search depends on it.
Terms = Counter[ScoreTerm]

#: A partition of terms: the spread of each group, and how often it is there.
Parts = list[tuple["BoxSpread", int]]


def spread(terms: Terms, box: Box, effort: Effort) -> Enclosure:
    """Enclose max ℓ - min ℓ."""
    if effort.used_up:
        return _ANYTHING
    if effort.group is not None:
        return _combine_partitions([_in_groups(terms, box, effort.group, effort)])
    joint = _start(terms, box, effort)
    joint.narrow(effort.with_share(_MOST_AT_ONCE))
    if terms.total() > _GROUP and joint.unsettled > effort.gap:
        return _combine_partitions([[(joint, 1)], _in_groups(terms, box, _GROUP, effort)])
    return joint.enclosure


def quick_bound(terms: Terms, box: Box, limit: float, effort: Effort) -> Enclosure:
    """Enclose the spread by a short search of all terms, which suffices if a limit is not near."""
    if effort.used_up:
        return _ANYTHING
    joint = _start(terms, box, effort)
    joint.compare(limit, effort.with_node_limit(_GLANCE))
    return joint.enclosure


def found_points(terms: Terms, box: Box, effort: Effort) -> tuple[Point, Point]:
    """Find points with a large and a small value by a search; return them by columns."""
    joint = _start(terms, box, effort)
    joint.narrow(effort)
    return joint.highest_at, joint.lowest_at


def all_compared(
    term_counters: Sequence[Terms], box: Box, limit: float, effort: Effort
) -> list[Enclosure]:
    """Enclose losses on one side of a limit if possible; stop at the first one above it.

    One good point shows that a loss is above the limit, but many nodes are needed to show that it
    is within. So each gets a short look before much is spent on any.
    """
    if effort.used_up:
        return [_ANYTHING for _ in term_counters]
    joints = [_start(terms, box, effort) for terms in term_counters]
    for nodes in (*_STAGES, effort.node_limit):
        for joint in joints:
            joint.compare(limit, effort.with_node_limit(nodes))
            if joint.enclosure.lower > limit:
                return [joint.enclosure for joint in joints]
    pairs = zip(term_counters, joints, strict=True)
    return [_with_groups(terms, box, joint, limit, effort) for terms, joint in pairs]


def _with_groups(
    terms: Terms, box: Box, joint: BoxSpread, limit: float, effort: Effort
) -> Enclosure:
    loss = joint.enclosure
    open_still = loss.lower <= limit < loss.upper and not effort.used_up
    if open_still and terms.total() > _GROUP:
        # Usually a look at the groups shows that they cannot help, whatever is spent on them.
        glance = _in_groups(terms, box, _GROUP, effort.with_node_limit(1))
        sums = [math.fsum(n * part.lowers[side] for part, n in glance) for side in (0, 1)]
        if any(low < high for low, high in zip(sums, joint.uppers, strict=True)):
            return _combine_partitions([[(joint, 1)], _in_groups(terms, box, _GROUP, effort)])
    return loss


def _start(terms: Iterable[ScoreTerm], box: Box, effort: Effort) -> BoxSpread:
    from expost.solver import BoxSpread, load_kernels

    load_kernels()
    search = BoxSpread(terms, box)
    effort.charge_work(search.setup_work)
    return search


def _in_groups(terms: Terms, box: Box, size: int, effort: Effort) -> Parts:
    """Split terms into groups of successive ones, and search each on its own.

    Return no groups if the work is used up before all of them are searched.
    """
    term_list = list(terms.elements())
    # A response that was given very often fills many groups, which are all alike.
    groups = Counter(tuple(term_list[part]) for part in blocks(len(term_list), size))
    shared, parts = effort.divide_gap(groups.total()), []
    for group, times in groups.items():
        if effort.used_up:
            return []
        part = _start(group, box, effort)
        part.narrow(shared)
        parts.append((part, times))
    return parts


def _combine_partitions(partitions: Sequence[Parts]) -> Enclosure:
    """Enclose the spread of a sum from several partitions of its terms.

    The largest sum is at most the sum of the largest parts, and likewise for its negative: for each
    of the two, the best partition counts. Only a partition into one part gives a lower bound.
    """
    partial_spreads = [parts for parts in partitions if parts]
    if not partial_spreads:
        return _ANYTHING
    uppers = [
        min(
            up(math.fsum(_times(n, part.uppers[side]) for part, n in parts))
            for parts in partial_spreads
        )
        for side in (0, 1)
    ]
    error = up(math.fsum(_times(n, part.error) for part, n in partial_spreads[0]))
    upper = up(up(math.fsum(uppers)) + error)
    joint_lowers = [
        parts[0][0].enclosure.lower for parts in partial_spreads if [n for _, n in parts] == [1]
    ]
    lower = max(joint_lowers, default=0.0)
    return Enclosure(lower, max(lower, upper))


def _times(n: int, amount: float) -> float:
    return amount if n == 1 else up(n * amount)


# What doubles lose of a sum of epsilons is far less.
_SURELY = 1 - 1e-9

# Work that is done even where none is left.
_NO_MATTER = 4_000

_NODES_FOR_POINTS = 400

#: The sort key of a term, the term, and its multiplicity.
Entry = tuple[tuple[object, ...], ScoreTerm, int]


@dataclass(frozen=True, eq=False)
class BoxLogLikelihood(LogLikelihood):
    """ℓ over a box, as the terms that are summed."""

    domain: Box
    searched: ClassVar[bool] = True
    distinct_exchanges: ClassVar[int] = 0  # nothing but epsilons is summed exactly
    #: The terms in order, as far as they are known already.
    _ordered: list[Entry] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, domain: Box, exchanges: Iterable[Exchange]) -> BoxLogLikelihood:
        """Return ℓ of some exchanges."""
        return cls(domain, Tally.of(exchanges), None)

    def add(self, query: Query, position: int, times: int = 1) -> BoxLogLikelihood:
        tally, ordered = self.tally.extended(query, position, times), None
        if self._ordered is not None:
            ordered = self._ordered_with(query, position, times)
        return BoxLogLikelihood(self.domain, tally, self._charged_with(query, times), ordered)

    @property
    def terms(self) -> Counter[ScoreTerm]:
        """The multiplicities of the terms, in an order that depends on the terms alone."""
        return _count_terms(self._in_order())

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
        index = bisect_left(entries, key, key=itemgetter(0))
        if index < len(entries) and entries[index][0] == key:
            times += entries.pop(index)[2]
        entries.insert(index, (key, term, times))
        return entries

    def _key(self, term: ScoreTerm) -> tuple[object, ...]:
        """Return a sort key with all fields of a term, so that only equal terms tie.

        The offset is first, because it distinguishes most terms. Weights are in the order of names,
        because equal boxes may have them in another order.
        """
        weights = self._by_name(term.weights)
        shape = term.epsilon, term.link, term.error, term.window, term.rounding_key
        return term.offset, weights, *shape

    @cached_property
    def _by_name(self) -> itemgetter[Any]:
        return itemgetter(*self.domain.order)

    def _term(self, query: Query, position: int) -> ScoreTerm:
        return query.on(self.domain).term(position)

    def epsilon_of(self, query: Query) -> Enclosure:
        return cap_loss(query.on(self.domain).epsilon, query.ceiling(self.domain).enclosure)

    def loss(self, effort: Effort) -> Enclosure:
        return self._capped(spread(self.terms, self.domain, effort.with_work_limit()))

    def loss_against(self, limit: float, effort: Effort) -> Enclosure:
        (loss,) = all_compared([self.terms], self.domain, limit, effort.with_work_limit())
        return self._capped(loss)

    def _capped(self, loss: Enclosure) -> Enclosure:
        """Cap a loss at the sum of the epsilons, which a loss surely below it does not need."""
        about = math.fsum([term.epsilon * times for _, term, times in self._in_order()])
        if self._charged is None and loss.upper < _SURELY * about:
            return loss
        return cap_loss(loss, self.spent)

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
        """Return the bound of basic composition if it is within the budget; it needs no search."""
        charge = query.ceiling(self.domain)
        # An exact sum goes through the whole tally, and is seldom needed.
        sums = WorstCase(
            (self.charged + RunningSum.of(charge) * times).enclosure,
            exact=lambda: self.exact_spent + charge * times,
        )
        if not sums.within(budget):
            return None
        most = budget.enclosure if sums.needs_exact(budget) else sums.loss
        return replace(sums, loss=Enclosure(0.0, min(sums.loss.upper, most.upper)))

    def _after(self, query: Query, times: int, limit: float, effort: Effort) -> WorstCase:
        """Bound the realized loss after several more queries, at worst, against a limit."""
        # No response adds more than epsilon, and that often decides.
        epsilons = self.epsilon_of(query) * times
        early_limit = down(limit - epsilons.upper)
        glance = self._capped(quick_bound(self.terms, self.domain, early_limit, effort))
        simple = _at_most(glance, epsilons)
        if simple.upper <= limit:
            return WorstCase(simple)
        worst = self._after_some(query, times, limit, effort)
        if worst.loss.lower <= limit < worst.loss.upper and not effort.used_up:
            # What the Simplified filter accepts is accepted here too.
            simple = _at_most(self.loss_against(early_limit, effort), epsilons)
        lower = max(worst.loss.lower, simple.lower)
        return replace(worst, loss=Enclosure(lower, min(worst.loss.upper, simple.upper)))

    def _after_some(self, query: Query, times: int, limit: float, effort: Effort) -> WorstCase:
        """Bound the worst loss over the sufficient responses, each repeated ``times`` times.

        If there are too many of them, after a loud one: then there is no upper end.
        """
        likelihood = query.on(self.domain)
        most = self.spent + query.ceiling(self.domain).enclosure * times
        sufficient = likelihood.sufficient
        tried = likelihood.largest_loss_responses if sufficient is None else sufficient
        after = [_count_terms(self._ordered_with(query, position, times)) for position in tried]
        losses = [cap_loss(loss, most) for loss in all_compared(after, self.domain, limit, effort)]
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

    def searched_points(self, effort: Effort) -> tuple[Point, Point]:
        """Find a likely and an unlikely point by a short search."""
        limited = effort.nodes is not None or effort.allowance is not None
        short = effort if limited else effort.with_work_limit().sharing_nodes(_NODES_FOR_POINTS)
        return found_points(self.terms, self.domain, short)

    def extreme_pair(self, effort: Effort) -> ExtremePair | None:
        # A search makes at least its first two nodes, whatever is left.
        if effort.used_up and root_work(len(self.terms), len(self.domain.columns)) > _NO_MATTER:
            return None
        return apart_on_box(self.tally, self.domain, *self.searched_points(effort))

    def least_share_of_basic(self, query: Query) -> Enclosure:
        worst, quietest = self.epsilon_of(query), query.on(self.domain).smallest_loss_responses
        if quietest is None:
            return capped_share(Enclosure(0.0, worst.upper), worst)
        alone, effort = BoxLogLikelihood.of(self.domain, ()), Effort(gap=1e-6)
        losses = [alone.add(query, position).loss(effort) for position in quietest]
        least = Enclosure(min(loss.lower for loss in losses), min(loss.upper for loss in losses))
        return capped_share(least, worst)


def _at_most(loss: Enclosure, epsilons: Enclosure) -> Enclosure:
    """Bound the worst loss after some queries, from the loss now and their epsilons.

    It is at most the sum of the two, and at least their difference, whichever is larger.
    """
    return Enclosure(max(loss.lower, down(epsilons.lower - loss.upper)), (loss + epsilons).upper)


def _count_terms(entries: Iterable[Entry]) -> Counter[ScoreTerm]:
    return Counter({term: times for _, term, times in entries})
