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
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from expost._grouping import group_pairs
from expost.domains import Attributes, Part, Record, Variable
from expost.filters import WorstCase
from expost.loss._components import (
    Component,
    Marginals,
    StaticComponent,
    TemporalComponent,
    link,
    sum_error,
)
from expost.loss._exponents import Combination, DistinctLikelihoods
from expost.loss._log_likelihood import ExtremePair, FiniteLogLikelihood, PartLoss
from expost.loss._query_marginal import (
    Candidate,
    QueryMarginal,
    ToldFrom,
    enclose,
    exact_worst_spread,
    repeated,
    signed,
)
from expost.loss._tables import ExactResponseTable, ResponseTable
from expost.numbers import INFINITE, Enclosure, ExactSum, Nats, down
from expost.queries import About, FiniteLikelihood, PartLikelihood, Query
from expost.solver import Effort
from expost.tally import Summand, Tally
from expost.transcript import Exchange

__all__ = [
    "AttributesLogLikelihood",
    "TwoRecords",
    "join_tables",
    "query_about_part",
    "split_components",
    "two_records",
]


@dataclass(frozen=True, slots=True)
class TwoRecords:
    """Two records: the responses are likeliest for one and least likely for the other."""

    likeliest: Record
    unlikeliest: Record
    #: The likelihood of the second over that of the first, exactly; 0 if it is ruled out.
    ratio: Fraction


def two_records(domain: Attributes, components: Sequence[Component]) -> TwoRecords | None:
    """Find the two records with the extremes of ℓ; None if no record is possible.

    Only variables that queries were about are in them. Those that make no difference are equal.
    """
    if any(part.extremes[0] == -math.inf for part in components):
        return None
    likeliest: Combination = {}
    for part in components:
        likeliest |= part.extreme(1)
    ruled_out = _ruled_out(domain, components, likeliest)
    if ruled_out is not None:
        return TwoRecords(domain.record(likeliest), domain.record(ruled_out), Fraction(0))
    unlikeliest: Combination = {}
    for part in components:
        likeliest_here = {variable: likeliest[variable] for variable in part.sizes}
        unlikeliest |= _move_closer(domain, part, part.extreme(-1), likeliest_here)
    tables = [table for part in components for table in part.tables]
    ratio = _ratio(tables, unlikeliest, likeliest).ratio
    return TwoRecords(domain.record(likeliest), domain.record(unlikeliest), ratio)


def _move_closer(
    domain: Attributes, part: Component, combination: Combination, target: Combination
) -> Combination:
    """Return a combination as likely as this one, and as similar as possible to a target."""
    about = group_pairs((variable, table) for table in part.tables for variable in table.variables)
    for group in _groups(part):
        closer = combination | {variable: target[variable] for variable in group}
        if closer == combination:
            continue
        touched = list(dict.fromkeys(table for variable in group for table in about[variable]))
        if _ratio(touched, combination, closer).sign == 0 and _respects_limits(domain, closer):
            combination = closer
    return combination


def _groups(part: Component) -> Iterator[list[Variable]]:
    """Yield what to make equal together: everything, attributes, then single variables."""
    yield list(part.sizes)
    for name in dict.fromkeys(name for name, _ in part.sizes):
        yield [variable for variable in part.sizes if variable[0] == name]
    yield from ([variable] for variable in part.sizes)


def _ratio(tables: Sequence[ResponseTable], first: Combination, second: Combination) -> ExactSum:
    """Return the exact likelihood ratio of two combinations, from these tables."""
    powers: Counter[int] = Counter()
    for table in tables:
        powers.update(table.exact.at(first))
        powers.subtract(table.exact.at(second))
    return ExactSum.product(powers)


def _ruled_out(
    domain: Attributes, components: Sequence[Component], likeliest: Combination
) -> Combination | None:
    """Find a record that some response rules out, as similar as possible to the likeliest."""
    for part in components:
        for table in part.tables:
            if table.on_part.lowest > -math.inf:
                continue
            ruled_out = np.flatnonzero(table.on_part.values == -math.inf)
            combinations = np.transpose(np.unravel_index(ruled_out, table.part.sizes))
            likeliest_here = [likeliest[variable] for variable in table.variables]
            nearest = combinations[(combinations != likeliest_here).sum(axis=1).argmin()]
            values = dict(zip(table.variables, map(int, nearest), strict=True))
            record = likeliest | values
            # A value that is the same at every step needs no change.
            constant = {name: value_index for (name, _), value_index in values.items()}
            held = {v: constant.get(v[0], value_index) for v, value_index in likeliest.items()}
            return record if _respects_limits(domain, record) else held
    return None


def _respects_limits(domain: Attributes, combination: Combination) -> bool:
    """Return whether the values at the steps, in order, respect the limits of changes."""
    histories = group_pairs(
        (name, (step, value_index))
        for (name, step), value_index in combination.items()
        if step is not None
    )
    for name, history in histories.items():
        attribute, moves = domain[name], list(pairwise(history))
        change = attribute.change
        assert change is not None, "only what changes has steps"
        if change.times is not None and sum(a != b for (_, a), (_, b) in moves) > change.times:
            return False
        if change.max_step is not None and any(
            abs(attribute.fractions[b] - attribute.fractions[a])
            > change.max_step * (later - earlier)
            for (earlier, a), (later, b) in moves
        ):
            return False
    return True


@dataclass(frozen=True, eq=False)
class AttributesLogLikelihood(FiniteLogLikelihood):
    """ℓ over records, by components: attributes that queries tie together."""

    domain: Attributes
    components: tuple[Component, ...]

    @classmethod
    def of(cls, domain: Attributes, exchanges: Iterable[Exchange]) -> AttributesLogLikelihood:
        """Return ℓ of some exchanges."""
        exchange_list, tables = list(exchanges), dict[tuple[Variable, ...], ResponseTable]()
        for exchange in exchange_list:
            likelihood = exchange.query.on(domain)
            table = tables.get(likelihood.variables) or ResponseTable.flat(likelihood)
            part_query = query_about_part(exchange.query)
            tables[table.variables] = table.add(part_query, exchange.position)
        components = tuple(join_tables(domain, tables.values()))
        return cls(domain, Tally.of(exchange_list), None, components)

    def add(self, query: Query, position: int) -> AttributesLogLikelihood:
        likelihood = query.on(self.domain)
        tied, other_components = self._split(likelihood.variables)
        matching = (table for table in tied.tables if table.variables == likelihood.variables)
        table = next(matching, None) or ResponseTable.flat(likelihood)
        component = tied.with_table(table.add(query_about_part(query), position))
        component.check()
        tally, charged = self.tally.extended(query, position), self._charged_with(query)
        return AttributesLogLikelihood(self.domain, tally, charged, (*other_components, component))

    def _split(self, variables: Sequence[Variable]) -> tuple[Component, list[Component]]:
        """Return the components of these variables as one, and the other components."""
        return split_components(self.domain, self.components, variables)

    @property
    def distinct_exchanges(self) -> int:
        return len(self.tally) + sum(part.comparison_work for part in self.components)

    @property
    def tables(self) -> list[ResponseTable]:
        """The tables of all responses, one for each list of variables that queries name."""
        return [table for part in self.components for table in part.tables]

    @cached_property
    def is_infinite(self) -> bool:
        """Whether some response rules a combination out; every combination has a record."""
        return any(table.on_part.lowest == -math.inf for table in self.tables)

    @cached_property
    def _error(self) -> float:
        variables = sum(len(part.sizes) for part in self.components)
        return sum_error(self.tables, 2 * variables + len(self.components))

    @cached_property
    def spread(self) -> Enclosure:
        if self.is_infinite:
            return Enclosure(math.inf, math.inf)
        extremes = [part.extremes for part in self.components]
        highest, lowest = (
            (math.fsum(ends) for ends in zip(*extremes, strict=True)) if extremes else (0.0, 0.0)
        )
        return enclose(highest, lowest, self._error)

    @cached_property
    def exact_loss(self) -> Nats:
        if self.is_infinite:
            return INFINITE
        return Nats.of(ExactSum.product(_spreads(self.components)))

    def _likelihood(self, query: Query) -> FiniteLikelihood:
        return query.on(self.domain).on_part

    def worst_after(self, query: Query, times: int, budget: Nats, effort: Effort) -> WorstCase:
        likelihood = query.on(self.domain)
        if self.is_infinite:
            return WorstCase(Enclosure(math.inf, math.inf), exact=lambda: INFINITE)
        marginal = self._marginal(likelihood)
        return marginal.worst_after(query_about_part(query), likelihood.on_part, times)

    def _marginal(self, likelihood: PartLikelihood) -> QueryMarginal:
        """Return ℓ as a query sees it."""
        tied, other_components = self._split(likelihood.variables)
        marginals = tied.marginals(likelihood.variables, likelihood.part.sizes)
        high = math.fsum(part.extremes[0] for part in other_components)
        low = math.fsum(part.extremes[1] for part in other_components)

        def exact_worst(told_from: ToldFrom, epsilon: Nats) -> Nats:
            return exact_worst_spread(exact(None), told_from, epsilon)

        def exact_with(extra: Summand) -> Nats:
            extremes = exact(extra)
            return INFINITE if extremes.is_infinite else extremes.difference(*extremes.extremes())

        def exact(extra: Summand | None) -> _ExactMarginal:
            return _ExactMarginal(
                likelihood, marginals, self._error, _spreads(other_components), extra
            )

        highs, lows = marginals.highs + high, marginals.lows + low
        return QueryMarginal(highs, lows, self._error, self._loss, exact_worst, exact_with)

    def marginal_powers(
        self, variables: tuple[Variable, ...], part: Part
    ) -> tuple[DistinctLikelihoods, DistinctLikelihoods]:
        """Return the largest and the smallest exact likelihood for each combination of variables.

        They are powers, up to one common factor. No response may rule a combination out.
        """
        tied, other_components = self._split(variables)
        marginals, everywhere = tied.marginals(variables, part.sizes), np.arange(len(part))
        highs, lows = (marginals.powers(everywhere, sign) for sign in (1, -1))
        higher = []
        for powers in highs.likelihoods:
            product = _spreads(other_components)
            product.update(powers)
            higher.append(product)
        return DistinctLikelihoods(higher, highs.indices), lows

    @property
    def by_part(self) -> tuple[PartLoss, ...]:
        losses: dict[tuple[str, ...], Enclosure] = {}
        for part in self.components:
            names = {name for name, _ in part.sizes}
            key = tuple(name for name in self.domain.names if name in names)
            loss = enclose(*part.extremes, part.error)
            losses[key] = losses[key] + loss if key in losses else loss
        ordered = sorted(losses, key=self.domain.indices)
        return tuple(PartLoss(names, losses[names]) for names in ordered)

    def extreme_pair(self, effort: Effort) -> ExtremePair | None:
        if self.exact_loss == Nats():
            return None
        records = self.two_records
        if records is None:
            return None
        return ExtremePair(records.likeliest, records.unlikeliest, self.exact_loss.nearest, None)

    @cached_property
    def two_records(self) -> TwoRecords | None:
        """The records with the extremes of ℓ, if any record is possible."""
        return two_records(self.domain, self.components)


def split_components(
    domain: Attributes, components: Iterable[Component], variables: Sequence[Variable]
) -> tuple[Component, list[Component]]:
    """Return the components of these variables as one, and the other components."""
    wanted = {link(domain, variable) for variable in variables}
    tied: list[Component] = []
    other_components: list[Component] = []
    for part in components:
        is_tied = any(link(domain, variable) in wanted for variable in part.sizes)
        (tied if is_tied else other_components).append(part)
    if len(tied) == 1 and (tied[0].follows_steps or not _limits_other_steps(domain, variables)):
        return tied[0], other_components
    tables = sorted((table for part in tied for table in part.tables), key=attrgetter("order"))
    return _component(domain, tuple(tables), variables), other_components


def join_tables(domain: Attributes, tables: Iterable[ResponseTable]) -> Iterator[Component]:
    """Yield components: tables that share variables, perhaps through other tables."""
    groups: list[tuple[set[Variable], list[ResponseTable]]] = []
    for table in tables:
        links, joined = {link(domain, variable) for variable in table.variables}, [table]
        separate = []
        for group_links, group_tables in groups:
            if group_links.isdisjoint(links):
                separate.append((group_links, group_tables))
            else:
                group_links |= links
                group_tables += joined
                links, joined = group_links, group_tables
        groups = [*separate, (links, joined)]
    for _, joined in groups:
        component = _component(domain, tuple(sorted(joined, key=attrgetter("order"))))
        component.check()
        yield component


def _component(
    domain: Attributes, tables: tuple[ResponseTable, ...], query_variables: Sequence[Variable] = ()
) -> Component:
    """Make one component of tables and of the variables of a query."""
    variables = [variable for table in tables for variable in table.variables]
    follows = _limits_other_steps(domain, [*variables, *query_variables])
    return TemporalComponent(tables, domain) if follows else StaticComponent(tables)


def _limits_other_steps(domain: Attributes, variables: Iterable[Variable]) -> bool:
    """Return whether the value of a variable limits the values at other steps."""
    return any(link(domain, variable) != variable for variable in variables)


def query_about_part(query: Query) -> Query:
    """Return the query about the part of a record."""
    assert isinstance(query, About), "records are asked about some of their attributes"
    return query.query


def _spreads(components: Iterable[Component]) -> Counter[int]:
    """Return the powers whose product has the logarithm max ℓ - min ℓ of these components."""
    total: Counter[int] = Counter()
    for part in components:
        total.update(part.exact_spread)
    return total


@dataclass(frozen=True, eq=False)
class _ExactMarginal:
    """The exact extremes of ℓ as a query sees it, perhaps after a repeated response."""

    likelihood: PartLikelihood
    marginals: Marginals
    error: float
    #: Powers that other components add to every difference.
    constant: Counter[int]
    extra: Summand | None

    @cached_property
    def _extra_logs(self) -> tuple[NDArray[np.float64] | float, float]:
        if self.extra is None:
            return 0.0, 0.0
        term = self.extra.query.on(self.likelihood.part).term(self.extra.position)
        return repeated(term, self.extra.times)

    @property
    def is_infinite(self) -> bool:
        return bool(np.min(self._extra_logs[0]) == -math.inf)

    def extremes(self, among: NDArray[np.bool_] | None = None) -> tuple[Candidate, Candidate]:
        logs, error = self._extra_logs
        highs = signed(self.marginals.highs + logs, 1, among)
        lows = signed(self.marginals.lows + logs, -1, among)
        # One more addition rounds by less than what the error has to spare.
        near = 2 * (self.error + 2 * error)
        high, low = (np.flatnonzero(s >= down(float(s.max()) - near)) for s in (highs, lows))
        best = self.marginals.best(high, low, self._extra_table)
        highest, lowest = (Candidate(*candidate) for candidate in best)
        return highest, lowest

    @property
    def _extra_table(self) -> ExactResponseTable | None:
        if self.extra is None:
            return None
        return ExactResponseTable(self.likelihood.variables, self.likelihood.part, [self.extra])

    def difference(self, first: Candidate, second: Candidate) -> Nats:
        powers = self.constant.copy()
        powers.update(first.powers)
        powers.subtract(second.powers)
        return Nats.of(ExactSum.product(powers))
