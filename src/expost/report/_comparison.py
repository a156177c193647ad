"""A comparison of accounting methods on one transcript.

For a composition rule, the result is the least epsilon at which its filter would have accepted the
whole transcript at a delta. Everything that the rule needs fixed in advance is fixed by the budget,
the delta, the first query, and whether any query takes a delta; or by the transcript's filter.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost._format import format_count, format_list, format_nats
from expost.cards import View
from expost.errors import InvalidInput
from expost.files.canonical import plain_tree, readable_tree
from expost.files.tables import ResultTable
from expost.filters import (
    BayesianFilter,
    CompositionFilter,
    Filter,
    Repeats,
    SimplifiedFilter,
    WorstCase,
)
from expost.filters._acceptance_limits import MOST_REPEATS
from expost.filters._account import account_of
from expost.filters.rules import (
    RULES,
    Declared,
    Mixture,
    Renyi,
    Rogers,
    Rule,
    Sums,
    Whitehouse,
    best_exponent_for_small,
)
from expost.loss import Odometer
from expost.numbers import Enclosure, ExactLike, Nats
from expost.queries import LARGEST_EPSILON, read_delta
from expost.transcript import Transcript

__all__ = [
    "METHODS",
    "Comparison",
    "Standing",
    "basic_charges",
    "basic_prefix",
    "budget_and_delta",
    "compare",
    "composition_costs",
    "composition_filters",
    "costs_within_budget",
]

# Every rule prices every one of them, to thirty digits.
_MOST_DIFFERENT = 3_000

# A plan is declared before the first response: a transcript alone has none to compare with.
_RULES = tuple(kind for kind in RULES if kind != Declared.kind)

#: By name, in the order in which they are shown.
METHODS = (*_RULES, SimplifiedFilter.kind, BayesianFilter.kind)

# Rogers needs much more than the others, and would be outside of the picture.
_DRAWN = (Sums.kind, Whitehouse.kind, Renyi.kind, Mixture.kind)
_DELTA = Fraction(1, 10**6)
_SMALLEST_PLAN = 1e-9


@dataclass(frozen=True, slots=True)
class Standing:
    """The result of one accounting method, and how many more queries it would accept."""

    name: str
    filter: Filter
    #: The least epsilon at which its filter accepts everything; or the realized loss.
    spent: float | Enclosure
    #: How many more of the last query it would accept, whatever the responses.
    repeats: Repeats

    @property
    def bounds(self) -> str:
        """What it bounds: "loss" or "epsilon"."""
        return "loss" if isinstance(self.spent, Enclosure) else "epsilon"

    @property
    def enclosure(self) -> Enclosure:
        """The spent amount, with equal ends unless it is a realized loss."""
        spent = self.spent
        return spent if isinstance(spent, Enclosure) else Enclosure(spent, spent)

    @property
    def repeats_text(self) -> str:
        """How many more queries it would accept, as text."""
        count, undecided = self.repeats.count, self.repeats.undecided
        return f"{count:,}{' or more' if undecided or count == MOST_REPEATS else ''}"

    @property
    def parameters(self) -> str:
        """The parameters that a rule had to fix in advance, for people."""
        rule = self.filter.rule if isinstance(self.filter, CompositionFilter) else None
        parts = []
        if isinstance(rule, Renyi):
            parts.append(f"order {format_nats(float(rule.order))}")
        if isinstance(rule, Mixture):
            parts.append(
                f"{len(rule.lambdas)} lambdas from {format_nats(float(min(rule.lambdas)))}"
            )
        if isinstance(rule, Whitehouse | Renyi | Mixture) and rule.delta_prime is not None:
            parts.append(f"delta' {format_nats(float(rule.delta_prime))}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True, repr=False)
class Comparison(ResultTable):
    """The results of several accounting methods on one transcript and one budget."""

    budget: Nats
    delta: Fraction
    exchanges: int
    standings: dict[str, Standing]
    #: Methods that do not allow this delta, and why.
    missing: dict[str, str]

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table, with a row per accounting method.

        ``lower`` and ``upper`` are equal except for a realized loss. ``undecided`` is True if more
        than ``more`` may fit, and ``parameters`` lists what a rule had to fix in advance.
        """
        rows = self.standings.values()
        return {
            "method": [row.name for row in rows],
            "bounds": [row.bounds for row in rows],
            "lower": [row.enclosure.lower for row in rows],
            "upper": [row.enclosure.upper for row in rows],
            "more": [row.repeats.count for row in rows],
            "undecided": [row.repeats.undecided for row in rows],
            "parameters": [row.parameters for row in rows],
        }

    @property
    def beyond(self) -> str:
        """A caution about rules whose parameters suit a budget that they exceed; or empty."""
        limit = self.budget.enclosure.upper
        over = [
            row.name
            for row in self.standings.values()
            if isinstance(row.filter, CompositionFilter)
            and isinstance(row.filter.rule, Renyi | Mixture)
            and row.enclosure.lower > limit
        ]
        if not over:
            return ""
        return (
            f"above the budget {format_list(over)} {'show' if len(over) > 1 else 'shows'} little "
            "of how good the rule is, because its parameters suit the budget"
        )

    def _view(self) -> View:
        standings = list(self.standings.values())

        def row(index: int) -> tuple[object, ...]:
            standing = standings[index]
            spent = standing.enclosure.shown()
            return standing.name, standing.bounds, spent, standing.repeats_text, standing.parameters

        allowed = f"budget {self.budget} at delta {format_nats(float(self.delta))}"
        facts: dict[str, object] = {"more": "of the last query, whatever the responses"}
        facts |= self.missing
        if self.beyond:
            facts["note"] = self.beyond
        title = f"Comparison({allowed}, {format_count(self.exchanges, 'exchange')})"
        head = ("method", "bounds", "spent", "more", "parameters")
        return View(title, facts, head, len(standings), row)

    def tree(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        rows: dict[str, Any] = dict.fromkeys(METHODS)
        rules = {}
        for name, standing in self.standings.items():
            rows[name] = {standing.bounds: standing.spent, "more": standing.repeats.count}
            if isinstance(standing.filter, CompositionFilter):
                rules[name] = readable_tree(standing.filter.rule.tree())
        undecided = [name for name, row in self.standings.items() if row.repeats.undecided]
        return plain_tree(
            {
                **rows,
                "budget": self.budget.nearest,
                "delta": float(self.delta),
                "exchanges": self.exchanges,
                "rules": rules,
                "missing": self.missing,
                "undecided": undecided,
            }
        )


def compare(
    history: object,
    epsilon: ExactLike | None = None,
    delta: ExactLike | None = None,
    *,
    stage: Callable[[str], None] | None = None,
) -> Comparison:
    """Compare accounting methods on a transcript and a budget.

    Proofs: docs/theory/approximate.md, docs/theory/filters.md.

    Args:
        history: A transcript, a session or an odometer.
        epsilon: The budget; by default that of the transcript's filter.
        delta: The delta; by default that of the transcript's filter, or 1e-6 if it has none.
        stage: Called with the name of the next accounting method.

    Raises:
        InvalidInput: Nothing was asked, there is no budget, or too many queries are different.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon="0.5")
    >>> transcript = xp.Transcript(xp.FiniteSet(["no", "yes"])).add(query, "yes").add(query, "no")
    >>> found = compare(transcript, epsilon=2)
    >>> found.standings["basic"].repeats.count, found.standings["bayesian"].repeats.count
    (2, 4)
    """
    odometer = account_of(history)
    assert isinstance(odometer, Odometer)
    odometer = odometer.with_effort(odometer.effort.with_work_limit()).with_known_losses(odometer)
    transcript = odometer.transcript
    budget, spared = budget_and_delta(transcript, epsilon, delta)
    if not transcript.exchanges:
        raise InvalidInput("has no exchanges, so there is no query to ask again")
    different = len({id(exchange.query) for exchange in transcript.exchanges})
    if different > _MOST_DIFFERENT:
        reason = (
            f"there are {different:,} different queries; at most {_MOST_DIFFERENT:,} are compared"
        )
        raise InvalidInput(reason, "exchanges")
    filters, missing = composition_filters(transcript, budget, spared)
    standings = {}
    every: dict[str, Filter] = {
        **filters,
        SimplifiedFilter.kind: SimplifiedFilter.of(budget),
        BayesianFilter.kind: BayesianFilter.of(budget),
    }
    last = transcript.exchanges[-1].query
    for name, filter_ in every.items():
        if stage is not None:
            stage(name)
        spent: float | Enclosure
        if isinstance(filter_, CompositionFilter):
            spent = filter_.exact_loss(odometer).nearest
        else:
            spent = odometer.tightest_loss
        standings[name] = Standing(name, filter_, spent, filter_.count_repeats(odometer, last))
    return Comparison(budget, spared, len(transcript), standings, missing)


def budget_and_delta(
    transcript: Transcript, epsilon: ExactLike | None, delta: ExactLike | None
) -> tuple[Nats, Fraction]:
    """Return a budget and a delta, by default those of the transcript's filter."""
    if epsilon is not None:
        budget = Nats.budget(epsilon)
    else:
        filter_ = transcript.required_filter
        if filter_.budget_of_person is None:
            reason = f"the budget is {filter_.limit}, and composition rules are about the person"
            raise InvalidInput(f"{reason} as a whole; give an epsilon")
        budget = filter_.budget_of_person
    if delta is not None:
        return budget, read_delta(delta)
    named = transcript.filter
    return budget, named.delta if isinstance(named, CompositionFilter) else _DELTA


def composition_filters(
    transcript: Transcript, budget: Nats, delta: Fraction
) -> tuple[dict[str, CompositionFilter], dict[str, str]]:
    """Make the filters of all composition rules; report why some do not allow this delta."""
    filters, missing = {}, {}
    for rule in _choose_rules(transcript, budget, delta):
        try:
            filters[rule.kind] = CompositionFilter.by(rule, budget, delta)
        except InvalidInput as error:
            missing[rule.kind] = error.reason
    return filters, missing


def composition_costs(
    odometer: Odometer, filters: Sequence[CompositionFilter]
) -> Iterator[tuple[WorstCase, ...]]:
    """Yield the costs of composition filters, at the start and after each exchange."""
    transcript = odometer.transcript
    prefix = Odometer(Transcript(transcript.domain), effort=odometer.effort)
    yield tuple(filter_.current_case(prefix) for filter_ in filters)
    for exchange in transcript.exchanges:
        prefix = prefix.add_position(exchange.query, exchange.position)
        yield tuple(filter_.current_case(prefix) for filter_ in filters)


def costs_within_budget(
    odometer: Odometer,
    delta: ExactLike | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[float]] | None:
    """Compute the costs of composition rules after each response, while within the budget.

    Args:
        odometer: The odometer of a transcript.
        delta: The delta of the rules, by default that of the transcript's filter.
        progress: Called with the number of responses that are done, and of all.

    Returns:
        The costs by the names of the rules; None if there is no delta.
    """
    filter_ = odometer.transcript.filter
    if delta is None and (filter_ is None or filter_.pure):
        return None
    budget, spared = budget_and_delta(odometer.transcript, None, delta)
    filters, _ = composition_filters(odometer.transcript, budget, spared)
    drawn: dict[str, list[float]] = {name: [] for name in _DRAWN if name in filters}
    for done, cases in enumerate(composition_costs(odometer, [filters[name] for name in drawn])):
        if progress is not None:
            progress(done, len(odometer))
        within = {
            name: case for name, case in zip(drawn, cases, strict=True) if case.within(budget)
        }
        if not within:
            break  # what is over the budget stays there
        for name, case in within.items():
            drawn[name].append(case.loss.upper)
    return drawn


def _choose_rules(transcript: Transcript, budget: Nats, delta: Fraction) -> list[Rule]:
    domain = transcript.domain
    queries = {id(step.query): step.query for step in transcript.exchanges}.values()
    # What takes a delta gets half of it, as in the theorem of Rogers.
    half = delta / 2 if any(query.delta for query in queries) else delta
    renyi = _choose_order(transcript, budget, delta)
    mixture = Mixture.for_exact_budget(budget, delta)
    if any(renyi.charge(query, domain)[1] for query in queries):
        renyi = Renyi(_choose_order(transcript, budget, half).order, delta_prime=half)
        mixture = Mixture.for_exact_budget(budget, half)
        mixture = Mixture(mixture.lambdas, mixture.weights, delta_prime=half)
    rules = [Sums(), Rogers(), Whitehouse(half), renyi, mixture]
    filter_ = transcript.filter
    if isinstance(filter_, CompositionFilter):
        return [filter_.rule if filter_.rule.kind == rule.kind else rule for rule in rules]
    return rules


def _choose_order(transcript: Transcript, budget: Nats, delta: Fraction) -> Renyi:
    """Choose the order for a plan of queries like the first one."""
    planned = budget.nearest
    if transcript.exchanges:
        first, domain = transcript.exchanges[0].query, transcript.domain
        if first.approximate and first.cumulant(domain, Fraction(1)) < math.inf:
            # The cumulants of Gaussian noise go with λ(λ + 1), as those of many small queries.
            return Renyi(1 + best_exponent_for_small(budget.nearest, delta))
        planned = first.charge(domain).nearest
    planned = min(max(planned, _SMALLEST_PLAN), LARGEST_EPSILON)
    return Renyi.for_plan(budget.nearest, delta, planned)


def basic_charges(odometer: Odometer, budget: Nats | None) -> list[float]:
    """Return the sums of the epsilons, as long as they are within the budget."""
    stop = len(odometer) if budget is None else basic_prefix(odometer, budget)
    charges = [charge.upper for charge in odometer.basic_history[: stop + 1]]
    return [charge for charge in charges if charge < math.inf]


def basic_prefix(odometer: Odometer, budget: Nats) -> int:
    """Count the exchanges that basic composition would have allowed on this budget."""
    exchanges, domain = odometer.transcript.exchanges, odometer.domain
    approximate = (index for index, step in enumerate(exchanges) if step.query.approximate)
    most = next(approximate, len(exchanges))

    def exceeded(count: int) -> bool:
        queries = (exchange.query for exchange in exchanges.first(count))
        sums = WorstCase(
            odometer.basic_history[count],
            exact=lambda: Nats.total((query.ceiling(domain), 1) for query in queries),
        )
        return not sums.within(budget)

    # The sums only grow, so few of them have to be compared, and hardly any exactly.
    return bisect_left(range(1, most + 1), True, key=exceeded)
