r"""ℓ over records: the sum of what was answered about their parts.

.. math:: \ell(x) = \sum_S u_S(x_S)

with one table for each part S that was asked about. Records are never listed. All that a decision
needs are the extremes of ℓ for each combination of the part that the query is about. Proof:
docs/theory/attributes.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attributes, Part, Variable
from expost.filters import WorstCase
from expost.loss.chained import Chained
from expost.loss.component import Component, Marginals, link, sum_error
from expost.loss.exact import Candidate, signed
from expost.loss.exact_table import ExactTable
from expost.loss.exactly import ExactLogLikelihood
from expost.loss.exponents import Kinds
from expost.loss.extremes import Apart
from expost.loss.pairs import ToldFrom, exact_spread_apart
from expost.loss.seen import Seen, enclose, repeated
from expost.loss.shares import PartLoss
from expost.loss.tables import Table
from expost.loss.tied import Tied
from expost.loss.two_records import TwoRecords, two_records
from expost.numbers import INFINITE, Enclosure, Nats, down
from expost.numbers._exact_sum import ExactSum
from expost.queries import About, FiniteLikelihood, PartLikelihood, Query
from expost.solver import Effort
from expost.transcript import Exchange, Summand, Tally

__all__ = ["AttributesLogLikelihood"]


@dataclass(frozen=True, eq=False)
class AttributesLogLikelihood(ExactLogLikelihood[Attributes]):
    """ℓ over records, by components: attributes that joint questions tie together."""

    components: tuple[Component, ...]

    @classmethod
    def of(cls, domain: Attributes, exchanges: Iterable[Exchange]) -> AttributesLogLikelihood:
        """ℓ of some exchanges."""
        kept, tables = list(exchanges), dict[tuple[Variable, ...], Table]()
        for exchange in kept:
            likelihood = exchange.query.on(domain)
            table = tables.get(likelihood.variables) or Table.flat(likelihood)
            tables[table.variables] = table.add(_asked(exchange.query), exchange.position)
        components = tuple(_components(domain, tables.values()))
        return cls(domain, Tally.of(kept), None, components)

    def add(self, query: Query, position: int) -> AttributesLogLikelihood:
        likelihood = query.on(self.domain)
        tied, others = self._split(likelihood.variables)
        known = (table for table in tied.tables if table.variables == likelihood.variables)
        table = next(known, None) or Table.flat(likelihood)
        component = tied.with_table(table.add(_asked(query), position))
        component.check()
        tally, charged = self.tally.plus(query, position), self._charged_with(query)
        return AttributesLogLikelihood(self.domain, tally, charged, (*others, component))

    def _split(self, variables: Sequence[Variable]) -> tuple[Component, list[Component]]:
        """All components that these variables are in as one, and the others."""
        wanted = {self._link(variable) for variable in variables}
        tied: list[Component] = []
        others: list[Component] = []
        for part in self.components:
            known = any(self._link(variable) in wanted for variable in part.sizes)
            (tied if known else others).append(part)
        if len(tied) == 1 and (tied[0].follows_steps or not _follows(self.domain, variables)):
            return tied[0], others
        tables = sorted((table for part in tied for table in part.tables), key=_order)
        return _component(self.domain, tuple(tables), variables), others

    def _link(self, variable: Variable) -> Variable:
        return link(self.domain, variable)

    @property
    def different(self) -> int:
        return len(self.tally) + sum(part.compared for part in self.components)

    @property
    def _tables(self) -> list[Table]:
        return [table for part in self.components for table in part.tables]

    @cached_property
    def _is_infinite(self) -> bool:
        """Whether some response rules a combination out; every one is that of some record."""
        return any(table.on_part.lowest == -math.inf for table in self._tables)

    @cached_property
    def _error(self) -> float:
        variables = sum(len(part.sizes) for part in self.components)
        return sum_error(self._tables, 2 * variables + len(self.components))

    @cached_property
    def spread(self) -> Enclosure:
        if self._is_infinite:
            return Enclosure(math.inf, math.inf)
        extremes = [part.extremes for part in self.components]
        highest, lowest = (
            (math.fsum(ends) for ends in zip(*extremes, strict=True)) if extremes else (0.0, 0.0)
        )
        return enclose(highest, lowest, self._error)

    @cached_property
    def exact_loss(self) -> Nats:
        if self._is_infinite:
            return INFINITE
        return Nats.of(ExactSum.product(_spreads(self.components)))

    def _seen(self, query: Query) -> FiniteLikelihood:
        return query.on(self.domain).on_part

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        likelihood = query.on(self.domain)
        if self._is_infinite:
            return WorstCase(Enclosure(math.inf, math.inf), exact=lambda: INFINITE)
        return self._view(likelihood).worst_after(_asked(query), likelihood.on_part, times)

    def _view(self, likelihood: PartLikelihood) -> Seen:
        """ℓ as a query sees it."""
        tied, others = self._split(likelihood.variables)
        marginals = tied.marginals(likelihood.variables, likelihood.part)
        high = math.fsum(part.extremes[0] for part in others)
        low = math.fsum(part.extremes[1] for part in others)

        def apart(told_from: ToldFrom, amount: Nats) -> Nats:
            return exact_spread_apart(exact(None), told_from, amount)

        def together(extra: Summand) -> Nats:
            extremes = exact(extra)
            if extremes.is_infinite:
                return INFINITE
            return extremes.apart(*extremes.extremes())

        def exact(extra: Summand | None) -> _ExactSeen:
            return _ExactSeen(likelihood, marginals, self._error, _spreads(others), extra)

        highs, lows = marginals.highs + high, marginals.lows + low
        return Seen(highs, lows, self._error, self._loss, apart, together)

    def marginal_powers(self, variables: tuple[Variable, ...], part: Part) -> tuple[Kinds, Kinds]:
        """The largest and the smallest likelihood for each combination of some variables, exactly.

        As powers, up to one common factor. No response rules a combination out.
        """
        tied, others = self._split(variables)
        marginals, everywhere = tied.marginals(variables, part), np.arange(len(part))
        highs, lows = (marginals.powers(everywhere, sign) for sign in (1, -1))
        higher = []
        for powers in highs.different:
            more = _spreads(others)
            more.update(powers)
            higher.append(more)
        return Kinds(higher, highs.which), lows

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        found: dict[tuple[str, ...], Enclosure] = {}
        for part in self.components:
            names = {name for name, _ in part.sizes}
            key = tuple(name for name in self.domain.names if name in names)
            loss = enclose(*part.extremes, part.error)
            found[key] = found[key] + loss if key in found else loss
        ordered = sorted(found, key=self.domain.places)
        return tuple(PartLoss(names, found[names]) for names in ordered)

    def most_apart(self, effort: Effort) -> Apart | None:
        if self.exact_loss == Nats():
            return None
        found = self.two_records
        if found is None:
            return None
        return Apart(found.likeliest, found.unlikeliest, self.exact_loss.nearest, None)

    @cached_property
    def two_records(self) -> TwoRecords | None:
        """Records for which the responses are likeliest and least likely, if any is possible."""
        return two_records(self.domain, self.components)


def _components(domain: Attributes, tables: Iterable[Table]) -> Iterator[Component]:
    """Tables by what they depend on together, perhaps by way of others."""
    groups: list[tuple[set[Variable], list[Table]]] = []
    for table in tables:
        links, joined = {link(domain, variable) for variable in table.variables}, [table]
        apart = []
        for known, own in groups:
            if known.isdisjoint(links):
                apart.append((known, own))
            else:
                known |= links
                own += joined
                links, joined = known, own
        groups = [*apart, (links, joined)]
    for _, joined in groups:
        component = _component(domain, tuple(sorted(joined, key=_order)))
        component.check()
        yield component


def _order(table: Table) -> list[tuple[str, float]]:
    return table.order


def _component(
    domain: Attributes, tables: tuple[Table, ...], more: Sequence[Variable] = ()
) -> Component:
    """Tables as one component, which a query about some more variables is about."""
    variables = [variable for table in tables for variable in table.variables]
    follows = _follows(domain, [*variables, *more])
    return Chained(tables, domain) if follows else Tied(tables)


def _follows(domain: Attributes, variables: Iterable[Variable]) -> bool:
    """Whether one of these says something about another step."""
    return any(link(domain, variable) != variable for variable in variables)


def _asked(query: Query) -> Query:
    """What is asked about the part of a record that a query sees."""
    assert isinstance(query, About), "records are asked about some of their attributes"
    return query.query


def _spreads(components: Iterable[Component]) -> Counter[int]:
    """The powers whose product has the logarithm max ℓ - min ℓ over all these together."""
    total: Counter[int] = Counter()
    for part in components:
        for base, power in part.exact_spread.items():
            total[base] += power
    return total


@dataclass(frozen=True, eq=False)
class _ExactSeen:
    """The extremes of ℓ as a query sees it, exactly, perhaps after some more responses to it."""

    likelihood: PartLikelihood
    marginals: Marginals
    error: float
    rest: Counter[int]
    """What other components add to every difference."""
    extra: Summand | None

    @cached_property
    def _more(self) -> tuple[NDArray[np.float64] | float, float]:
        if self.extra is None:
            return 0.0, 0.0
        term = self.extra.query.on(self.likelihood.part).term(self.extra.position)
        return repeated(term, self.extra.times)

    @property
    def is_infinite(self) -> bool:
        return bool(np.min(self._more[0]) == -math.inf)

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        logs, error = self._more
        highs = signed(self.marginals.highs + logs, 1, among)
        lows = signed(self.marginals.lows + logs, -1, among)
        # One more addition rounds by less than what the error has to spare.
        near = 2 * (self.error + 2 * error)
        high, low = (np.flatnonzero(s >= down(float(s.max()) - near)) for s in (highs, lows))
        best = self.marginals.best(high, low, self._extra)
        highest, lowest = (Candidate(*each) for each in best)
        return highest, lowest

    @property
    def _extra(self) -> ExactTable | None:
        if self.extra is None:
            return None
        return ExactTable(self.likelihood.variables, self.likelihood.part, [self.extra])

    def apart(self, first: Candidate, second: Candidate) -> Nats:
        powers = self.rest.copy()
        powers.update(first.powers)
        powers.subtract(second.powers)
        return Nats.of(ExactSum.product(powers))
