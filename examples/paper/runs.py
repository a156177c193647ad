"""The composition experiment (paper, Algorithm 5): queries are asked until the filter refuses.

One run is one stream of queries with one response to each. Every filter, with every budget and
under both ways of accounting, sees the same queries and responses until it refuses a query, so
that they differ only in their decisions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from examples.paper.groups import Groups
from examples.paper.streams import Stream
from expost.filters import BayesianFilter, Filter, SimplifiedFilter
from expost.loss import Odometer, worst_case_loss
from expost.numbers import Enclosure
from expost.queries import Query
from expost.sampling import InsecureSource, draw
from expost.solver import NODES, Effort
from expost.transcript import Transcript

__all__ = ["ACCOUNTS", "BUDGETS", "EFFORT", "FILTERS", "Run", "Trace", "run", "run_transcript"]

BUDGETS = tuple(Fraction(tenth, 10) for tenth in range(1, 11))
EFFORT = Effort(gap=0.01, nodes=NODES)
ACCOUNTS = ("groups", "ungrouped")
FILTERS: dict[str, type[Filter]] = {
    filter_class.kind: filter_class for filter_class in (SimplifiedFilter, BayesianFilter)
}
_ALL_FILTERS = [(kind, i, class_(budget)) for kind, class_ in FILTERS.items()
           for i, budget in enumerate(BUDGETS)]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trace:
    """The losses and decisions of one way of accounting in the course of a run."""

    losses: Sequence[Enclosure]
    """At the start and after each response, until every filter has refused."""
    accepted: Mapping[str, Sequence[int]]
    """For each kind of filter, the number of accepted queries at each of the budgets."""
    decisions: int
    undecided: int


@dataclass(frozen=True, slots=True)
class Run:
    """The responses of one object that was asked as long as some filter accepted."""

    responses: Sequence[Any]
    traces: Mapping[str, Trace]


@dataclass(slots=True)
class _Lane:
    """A way of accounting during a run, with the filters that have not refused yet."""

    account: Odometer | Groups
    glance: bool = False
    """Whether the known loss plus an epsilon is tried before any search."""
    running: list[tuple[str, int, Filter]] = field(default_factory=lambda: list(_ALL_FILTERS))
    losses: list[Enclosure] = field(default_factory=list)
    accepted: dict[str, list[int]] = field(
        default_factory=lambda: {kind: [0] * len(BUDGETS) for kind in FILTERS}
    )
    decisions: int = 0
    undecided: int = 0

    def put(self, query: Query) -> None:
        """Ask every filter that still runs."""
        loss = self.account.loss
        self.losses.append(self._proved(loss))
        most = loss + worst_case_loss(query, self.account.domain)
        self.running = [entry for entry in self.running if self._accepts(entry[2], query, most)]
        for kind, i, _ in self.running:
            self.accepted[kind][i] += 1

    def _proved(self, loss: Enclosure) -> Enclosure:
        """The loss, bounded by the budgets of the filters that accepted the last query."""
        if not self.losses:
            return loss
        proved = min(filter_.budget.enclosure.upper for _, _, filter_ in self.running)
        return Enclosure(loss.lower, max(loss.lower, min(loss.upper, proved)))

    def _accepts(self, filter_: Filter, query: Query, most: Enclosure) -> bool:
        self.decisions += 1
        limit = filter_.budget.enclosure
        # Some response does not lower the loss, and none adds more than epsilon.
        least = most.lower if filter_.kind == SimplifiedFilter.kind else self.account.loss.lower
        if self.glance and (most.upper <= limit.lower or least > limit.upper):
            return most.upper <= limit.lower
        decision = filter_.decide(self.account, query)
        self.undecided += decision.undecided
        return decision.accepted


def run(stream: Stream, seed: int, run_index: int, effort: Effort = EFFORT) -> Run:
    """The run with this number. It depends on the arguments alone."""
    queries, source = _begin(stream, seed, run_index)
    box = stream.box
    centre = box.locate([0] * stream.dimension)
    assert centre is not None
    start = Odometer(Transcript(box), effort=effort)
    lanes = {"groups": _Lane(Groups.start(start)), "ungrouped": _Lane(start, glance=True)}
    responses: list[Any] = []
    for query in queries:
        running = [lane for lane in lanes.values() if lane.running]
        for lane in running:
            lane.put(query)
        if not any(lane.running for lane in running):
            break
        likelihood = query.on(box)
        responses.append(likelihood.responses[draw(likelihood.pmf(centre), source)])
        for lane in running:
            lane.account = lane.account.add(query, responses[-1])
    traces = {
        name: Trace(lane.losses, lane.accepted, lane.decisions, lane.undecided)
        for name, lane in lanes.items()
    }
    return Run(responses, traces)


def run_transcript(
    stream: Stream, seed: int, run_index: int, responses: Sequence[Any]
) -> Transcript:
    """The transcript of the run with this number, up to these responses."""
    queries, _ = _begin(stream, seed, run_index)
    transcript = Transcript(stream.box)
    for query, response in zip(queries, responses, strict=False):
        transcript = transcript.add(query, response)
    return transcript


def _begin(stream: Stream, seed: int, run_index: int) -> tuple[Iterator[Query], InsecureSource]:
    generator = np.random.default_rng([seed, stream.number, run_index])
    source = InsecureSource(int(generator.integers(2**62)))
    return stream.queries(generator), source
