"""Tests whether the responses of a client have the probabilities that a query claims.

Every input and event has a Clopper-Pearson interval. The probability that any of them misses is at
most 1 - confidence (Bonferroni), so everything that follows from the intervals holds at once: a
claimed probability outside its interval refutes the claim, and two intervals whose ends differ by
a factor prove an epsilon of at least its logarithm. Proof: docs/theory/audits.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from heapq import nlargest, nsmallest
from statistics import NormalDist
from typing import Any

import numpy as np

from expost._types import Floats
from expost.client_checks._binomial import largest_share, smallest_share, tail
from expost.client_checks._events import Event, events
from expost.client_checks._reports import inputs, read_reports
from expost.domains import Domain, Value
from expost.errors import expect
from expost.files.canonical import plain_tree
from expost.numbers import ExactLike, Nats, double_above, double_below, down, read_confidence
from expost.queries import Query, check_query

__all__ = ["ClientCheck", "Contradiction", "Shown", "check_client"]

_CLOSEST = 16
_MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An event that was seen too often or too rarely for the claimed probability.

    The claim is refuted because ``claimed`` is outside the interval from ``lower`` to ``upper``.
    """

    event: str
    #: None if the event is about all inputs together.
    input: Value | None
    hits: int
    trials: int
    #: The claimed probability; its mean if the event is about all inputs together.
    claimed: Fraction
    lower: float
    #: The interval of the probability, which holds together with all others of the check.
    upper: float

    def tree(self) -> dict[str, Any]:
        """Return the contradiction as JSON."""
        return {**asdict(self), "claimed": float(self.claimed)}


@dataclass(frozen=True, slots=True)
class Shown:
    """Proof of a lower bound on a client's epsilon: an event that is much likelier for one input.

    ``hits`` and ``trials`` are the counts for the input ``likely``, then for ``unlikely``.
    """

    #: The client's epsilon is at least this, in nats.
    epsilon: float
    event: str
    likely: Value
    unlikely: Value
    hits: tuple[int, int]
    trials: tuple[int, int]

    def tree(self) -> dict[str, Any]:
        """Return the event and where it was seen, as JSON."""
        fields = asdict(self)
        del fields["epsilon"]
        return fields


@dataclass(frozen=True, slots=True)
class ClientCheck:
    """The outcome of a test of a client's claim. :func:`check_client` returns it.

    Reports can refute a claim, but never confirm it.

    >>> import expost as xp
    >>> from expost.client_checks import check_client
    >>> table = {"input": ["no", "yes"] * 50, "output": ["no", "no", "yes", "yes"] * 25}
    >>> check = check_client(xp.randomized_response("0.1"), xp.FiniteSet(["no", "yes"]), table)
    >>> check.refuted, check.reports, check.shown
    (False, 100, None)
    """

    #: The domain of the inputs.
    domain: Domain
    #: A client that is as claimed is refuted with probability at most 1 - confidence.
    confidence: Fraction
    reports: int
    inputs: int
    #: The number of intervals among which the error is shared.
    intervals: int
    #: The epsilon of the claimed query.
    claimed: Nats
    #: The largest epsilon that the reports prove; None if they prove none.
    shown: Shown | None
    #: The clearest ones first, at most 20 of them.
    contradictions: tuple[Contradiction, ...]
    #: Two rows in which a permanent response differs, if there are any.
    changed: tuple[int, int] | None

    @property
    def refuted(self) -> bool:
        """True if the claim is refuted."""
        return bool(self.contradictions) or self.changed is not None

    def tree(self) -> dict[str, Any]:
        """Return the outcome as JSON."""
        best = self.shown
        tree = {
            "refuted": self.refuted,
            "confidence": float(self.confidence),
            "reports": self.reports,
            "inputs": self.inputs,
            "intervals": self.intervals,
            "claimed_epsilon": self.claimed.nearest,
            "shown_epsilon": best.epsilon if best else 0.0,
            "shown_by": best and best.tree(),
            "changed_rows": self.changed,
            "contradictions": [contradiction.tree() for contradiction in self.contradictions],
        }
        return plain_tree(tree)


def check_client(
    query: Query,
    domain: Domain,
    table: Any,
    *,
    confidence: ExactLike = "0.95",
    permanent: bool = False,
) -> ClientCheck:
    """Test whether a client's responses have the probabilities that a query has on a domain.

    Use it on software of other vendors, with inputs of your choice. Reports must be independent.

    Args:
        query: The query that the client claims to implement.
        domain: The domain of the inputs.
        table: A frame or a mapping of columns with a row per report: ``input`` (or a column for
            each name of the domain, or ``x0``, ``x1``, … on a plain box) and ``output``. On records
            there is a column for each attribute that the query is about, and perhaps for others,
            on which responses must not depend.
        confidence: A client that is as claimed is refuted with probability at most 1 - this.
        permanent: The client claims to repeat its response to an input forever. A column
            ``subject`` then names the subject of a report, a changed response refutes the claim,
            and only the first report of a subject on an input counts.

    Returns:
        The outcome: contradictions to the claim, and the largest epsilon that the reports prove.

    Raises:
        InvalidInput: The query does not work on the domain, or the table is not as described.

    >>> import expost as xp
    >>> from expost.client_checks import check_client
    >>> values = ["no"] * 500 + ["yes"] * 500
    >>> table = {"input": values, "output": values}  # a client without any noise
    >>> check = check_client(xp.randomized_response(2), xp.FiniteSet(["no", "yes"]), table)
    >>> check.refuted, check.shown.epsilon > 2
    (True, True)
    """
    check_query(query)
    expect(domain, Domain, "a FiniteSet, Attributes or a Box")
    level = read_confidence(confidence)
    query.on(domain)  # what does not fit the domain is said first
    domain = inputs(query, domain, table)
    likelihood = query.on(domain)
    reports, changed = read_reports(domain, likelihood, table, permanent=permanent)
    values = [domain.value(point) for point in reports]
    tested_events = list(events(likelihood, reports))
    intervals = sum(map(_intervals, tested_events))
    error = double_below((1 - level) / (2 * intervals))
    cells = (cell for event in tested_events for cell in _cells(event, values))
    chances = ((_chance(*cell[2:]), cell) for cell in cells)
    refuted = (pair for pair in chances if pair[0] <= error)
    clearest = nsmallest(_MOST_SHOWN, refuted, key=lambda pair: pair[0])
    return ClientCheck(
        domain=domain,
        confidence=level,
        reports=sum(counts.total() for counts in reports.values()),
        inputs=len(reports),
        intervals=intervals,
        claimed=query.ceiling(domain),
        shown=_shown(tested_events, values, error),
        contradictions=tuple(_contradiction(cell, error) for _, cell in clearest),
        changed=changed,
    )


def _contradiction(cell: _Cell, error: float) -> Contradiction:
    _, _, hits, trials, _ = cell
    ends = smallest_share(trials, hits, error), largest_share(trials, hits, error)
    return Contradiction(*cell, *ends)


def _is_pooled(event: Event) -> bool:
    return event.pooled or len(event.inputs) > 2


def _intervals(event: Event) -> int:
    return (0 if event.pooled else len(event.inputs)) + _is_pooled(event)


#: The first fields of a contradiction, up to the claimed probability.
_Cell = tuple[str, Value | None, int, int, Fraction]


def _cells(event: Event, values: Sequence[Value]) -> Iterator[_Cell]:
    """Yield the counts that can be compared with the claim: of each input, and of all together."""
    if not event.pooled:
        counts = zip(event.inputs, event.hits, event.trials, event.claimed, strict=True)
        for index, hits, trials, claimed in counts:
            yield event.name, values[index], hits, trials, claimed
    if _is_pooled(event):
        hits, trials, expected = sum(event.hits), sum(event.trials), _expected(event)
        # Hoeffding (1956): at a distance of one or more from the mean, the tail of a sum is
        # smaller with different probabilities than with their mean.
        if abs(hits - expected) >= 1 or len(set(event.claimed)) == 1:
            yield event.name, None, hits, trials, expected / trials


def _expected(event: Event) -> Fraction:
    """Return the expected number of hits, exactly; few claimed probabilities differ."""
    tops: Counter[int] = Counter()
    for trials, claimed in zip(event.trials, event.claimed, strict=True):
        top, bottom = claimed.as_integer_ratio()
        tops[bottom] += trials * top
    return sum((Fraction(top, bottom) for bottom, top in tops.items()), start=Fraction(0))


def _chance(hits: int, trials: int, claimed: Fraction) -> float:
    """Bound the probability of a count at least as unusual, if the claim is true; 1 if usual."""
    share, at_most, misses_at_most = _in_doubles(*claimed.as_integer_ratio())
    deviation = math.sqrt(trials * share * (1 - share))
    # Within a standard deviation nothing is ever refuted, and most counts are within it.
    if abs(hits - trials * share) < deviation:
        return 1.0
    return min(tail(trials, hits, at_most), tail(trials, trials - hits, misses_at_most))


# Thousands of events share a few claimed probabilities; the hash of a fraction takes longer.
@lru_cache(maxsize=1 << 12)
def _in_doubles(top: int, bottom: int) -> tuple[float, float, float]:
    """Return a probability, an upper bound on it, and an upper bound on its complement."""
    claimed = Fraction(top, bottom)
    return float(claimed), double_above(claimed), double_above(1 - claimed)


def _shown(tested_events: Sequence[Event], values: Sequence[Value], error: float) -> Shown | None:
    """Return the largest proven epsilon, among the candidates that look largest."""
    quantile = NormalDist().inv_cdf(1 - max(error, 1e-15))
    candidates = (
        candidate
        for event in tested_events
        if not event.pooled and len(event.inputs) > 1
        for candidate in _candidates(event, values, quantile)
    )
    best: Shown | None = None
    for candidate in nlargest(_CLOSEST, candidates, key=lambda candidate: candidate.epsilon):
        low = smallest_share(candidate.trials[0], candidate.hits[0], error)
        high = largest_share(candidate.trials[1], candidate.hits[1], error)
        epsilon = down(down(math.log(low / high))) if low > high else 0.0
        if epsilon > (best.epsilon if best else 0.0):
            best = replace(candidate, epsilon=epsilon)
    return best


def _candidates(event: Event, values: Sequence[Value], quantile: float) -> Iterator[Shown]:
    """Pick the inputs between which an event, or its opposite, seems to differ most.

    Their epsilons are approximate.
    """
    trials = np.array(event.trials, dtype=np.float64)
    misses = tuple(n - k for n, k in zip(event.trials, event.hits, strict=True))
    for name, hits in ((event.name, event.hits), (f"no {event.name}", misses)):
        low, high = _wilson(np.array(hits, dtype=np.float64), trials, quantile)
        likely, unlikely = int(low.argmax()), int(high.argmin())
        if 0 < high[unlikely] < low[likely]:
            yield Shown(
                math.log(low[likely] / high[unlikely]),
                name,
                values[event.inputs[likely]],
                values[event.inputs[unlikely]],
                (hits[likely], hits[unlikely]),
                (event.trials[likely], event.trials[unlikely]),
            )


def _wilson(hits: Floats, trials: Floats, quantile: float) -> tuple[Floats, Floats]:
    """Approximate the ends of the intervals without a search (Wilson 1927)."""
    square = quantile**2
    middle = (hits + square / 2) / (trials + square)
    spread = quantile / (trials + square) * np.sqrt(hits * (trials - hits) / trials + square / 4)
    return middle - spread, middle + spread
