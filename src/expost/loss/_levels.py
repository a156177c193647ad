r"""ℓ at a level of protection: its largest difference over the pairs that the level protects.

A level has units, such as a group of attributes or a window of steps, and the records of a pair
differ within one of them. So each amount at the level is the largest over units: the loss, the
loss after a query at worst, and the sum of the epsilons of the queries that touch a unit. A query
changes the amounts of the units that it touches, and no others. Proof: docs/theory/levels.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, reduce
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple, Self

from expost.domains import Attributes
from expost.filters import WorstCase
from expost.filters._account import largest_case, sum_after
from expost.filters._levels import Constants, Group, Level, Steps, Unit, Window, units_of
from expost.loss._log_likelihood import cap_loss
from expost.loss._on_attributes import AttributesLogLikelihood
from expost.loss._tables import ResponseTable
from expost.loss._twins import TwinLikelihood, Twins
from expost.numbers import Enclosure, Nats, RunningSum
from expost.queries import Query
from expost.solver import Effort
from expost.tally import Tally

__all__ = ["LevelLikelihood", "start_level"]

_EFFORT = Effort()


@dataclass(frozen=True, eq=False)
class UnitLikelihood:
    """The responses about the variables of a unit, as far as records that differ within it do.

    While no query ties the unit to other variables, that is ℓ of these responses.
    """

    domain: Attributes
    unit: Unit
    tally: Tally
    charged: RunningSum
    #: ℓ of all responses that touch the unit, while none ties it to other variables.
    alone: AttributesLogLikelihood | None
    #: The difference of ℓ of two records, once some response does.
    tied: TwinLikelihood | None

    @classmethod
    def start(cls, domain: Attributes, unit: Unit) -> UnitLikelihood:
        """Return ℓ of no responses."""
        alone = AttributesLogLikelihood.of(domain, ())
        return cls(domain, unit, Tally(), RunningSum(), alone, None)

    def add(self, query: Query, position: int, *, counted: bool) -> UnitLikelihood:
        """Return it after one more response, whose ℓ counts unless some record is impossible."""
        tally = self.tally.extended(query, position)
        charged = self.charged + RunningSum.of(query.ceiling(self.domain))
        changed = replace(self, tally=tally, charged=charged)
        if not counted:
            return changed
        if self.is_alone_with(query):
            assert self.alone is not None
            return replace(changed, alone=self.alone.add(query, position))
        return replace(changed, alone=None, tied=self.twins.add(query, position))

    def is_alone_with(self, query: Query) -> bool:
        """Return whether neither the responses nor a query tie the unit to other variables."""
        variables = query.on(self.domain).variables
        return self.alone is not None and all(map(self.unit.has, variables))

    @cached_property
    def twins(self) -> TwinLikelihood:
        """The difference of ℓ of two records that are equal except within the unit."""
        if self.tied is not None:
            return self.tied
        return TwinLikelihood.of(Twins(self.domain, self.unit), self.tables)

    @property
    def tables(self) -> Sequence[ResponseTable]:
        """The tables of all responses that touch the unit."""
        if self.alone is not None:
            return self.alone.tables
        assert self.tied is not None
        return self.tied.tables

    @cached_property
    def loss(self) -> WorstCase:
        """The loss about records that differ within the unit."""
        if self.alone is not None:
            alone = self.alone
            return WorstCase(alone.loss(_EFFORT), lambda: alone.exact_loss)
        case = self.twins.loss
        return replace(case, loss=cap_loss(case.loss, self.charged.enclosure))

    def worst_after(self, query: Query, times: int) -> WorstCase:
        """Bound that loss after a query that touches the unit is asked several times."""
        if self.is_alone_with(query):
            assert self.alone is not None
            return self.alone.worst_after(query, times, Nats(), _EFFORT)
        return self.twins.worst_after(query, times)

    def plus_epsilon(self, query: Query, times: int) -> WorstCase:
        """Bound that loss before the last of these queries, plus its epsilon within the unit."""
        before = self.loss if times == 1 else self.worst_after(query, times - 1)
        epsilon = UnitLikelihood.start(self.domain, self.unit).worst_after(query, 1)
        return sum_of_cases([before, epsilon])

    @cached_property
    def spent(self) -> WorstCase:
        """The sum of the epsilons of all queries that touch the unit."""
        return WorstCase(self.charged.enclosure, lambda: self.exact_spent)

    @property
    def exact_spent(self) -> Nats:
        """The exact sum of these epsilons."""
        return Nats.total((part.query.ceiling(self.domain), part.times) for part in self.tally)

    def spent_after(self, query: Query, times: int) -> WorstCase:
        """Return that sum after a query that touches the unit is asked several times."""
        charge = query.ceiling(self.domain)
        return sum_after(self.charged, lambda: self.exact_spent, charge, times)


def sum_of_cases(cases: Sequence[WorstCase], loss: Enclosure | None = None) -> WorstCase:
    """Return the sum of some amounts that are exact where needed, perhaps enclosed already."""
    if len(cases) == 1:
        return cases[0]
    if loss is None:
        loss = reduce(Enclosure.__add__, (case.loss for case in cases))

    def exact() -> Nats:
        return Nats.total((case.exact(), 1) for case in cases if case.exact)

    return WorstCase(loss, exact, cases[0].response)


@dataclass(frozen=True, eq=False)
class LevelLikelihood(ABC):
    """ℓ at a level. Immutable; what has been computed about a unit stays until it is touched."""

    domain: Attributes

    @abstractmethod
    def add(self, query: Query, position: int, *, counted: bool) -> Self:
        """Return ℓ after one more response, which counts unless some record is impossible."""

    @property
    @abstractmethod
    def loss(self) -> WorstCase:
        """The realized loss at the level."""

    @abstractmethod
    def losses_by_unit(self) -> dict[Unit, WorstCase]:
        """Return the losses about each unit that a query has touched."""

    @abstractmethod
    def sums_by_unit(self) -> dict[Unit, WorstCase]:
        """Return the sum of the epsilons of the queries that touch each unit."""

    @abstractmethod
    def worst_after(self, query: Query, times: int) -> WorstCase:
        """Bound the loss after a query is asked several times, at worst over responses."""

    @abstractmethod
    def plus_epsilon(self, query: Query, times: int) -> WorstCase:
        """Bound the loss before the last of these queries, and add its epsilon, unit by unit."""

    @property
    @abstractmethod
    def spent(self) -> WorstCase:
        """The largest sum of the epsilons of the queries that touch one unit."""

    @abstractmethod
    def spent_after(self, query: Query, times: int) -> WorstCase:
        """Return that sum after a query is asked several times."""


def start_level(level: Level, domain: Attributes) -> LevelLikelihood:
    """Return ℓ of no responses at a level that suits the domain."""
    if isinstance(level, Steps):
        return StepsLikelihood.start(domain, level)
    return GroupsLikelihood(domain, units_of(level, domain))


@lru_cache(maxsize=64)
def _units_by_name(units: tuple[Group, ...]) -> dict[str, list[Group]]:
    by_name: dict[str, list[Group]] = {}
    for unit in units:
        for name in unit.names:
            by_name.setdefault(name, []).append(unit)
    return by_name


@dataclass(frozen=True, eq=False)
class GroupsLikelihood(LevelLikelihood):
    """ℓ where the units are groups of attributes."""

    units: tuple[Group, ...]
    #: ℓ of the units that a query has touched.
    likelihoods: dict[Unit, UnitLikelihood] = field(default_factory=dict)

    def _touched(self, query: Query) -> list[UnitLikelihood]:
        by_name = _units_by_name(self.units)
        names = [name for name, _ in query.on(self.domain).variables]
        units = dict.fromkeys(unit for name in names for unit in by_name[name])
        return [
            self.likelihoods.get(unit) or UnitLikelihood.start(self.domain, unit) for unit in units
        ]

    def add(self, query: Query, position: int, *, counted: bool) -> GroupsLikelihood:
        likelihoods = self.likelihoods.copy()
        for likelihood in self._touched(query):
            likelihoods[likelihood.unit] = likelihood.add(query, position, counted=counted)
        return replace(self, likelihoods=likelihoods)

    def losses_by_unit(self) -> dict[Unit, WorstCase]:
        return {unit: likelihood.loss for unit, likelihood in self.likelihoods.items()}

    def sums_by_unit(self) -> dict[Unit, WorstCase]:
        return {unit: likelihood.spent for unit, likelihood in self.likelihoods.items()}

    @cached_property
    def loss(self) -> WorstCase:
        return largest_case([likelihood.loss for likelihood in self.likelihoods.values()])

    def worst_after(self, query: Query, times: int) -> WorstCase:
        touched = self._touched(query)
        return largest_case([*(unit.worst_after(query, times) for unit in touched), self.loss])

    def plus_epsilon(self, query: Query, times: int) -> WorstCase:
        touched = self._touched(query)
        return largest_case([*(unit.plus_epsilon(query, times) for unit in touched), self.loss])

    @cached_property
    def spent(self) -> WorstCase:
        return largest_case([likelihood.spent for likelihood in self.likelihoods.values()])

    def spent_after(self, query: Query, times: int) -> WorstCase:
        touched = self._touched(query)
        return largest_case([*(unit.spent_after(query, times) for unit in touched), self.spent])


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount that adds up over the steps of a window, unless constants tie them together."""

    of_step: Callable[[UnitLikelihood], WorstCase]
    #: The amount of a window whose steps are tied; None if it adds up nevertheless.
    of_twins: Callable[[TwinLikelihood], WorstCase] | None


_LOSS = _Amount(attrgetter("loss"), attrgetter("loss"))
_SPENT = _Amount(attrgetter("spent"), None)


class _Steps(NamedTuple):
    """The sum over some steps, and whether constants tie one of them."""

    amount: Enclosure
    tied: bool

    def plus(self, other: _Steps) -> _Steps:
        """Return the sum over the steps of both."""
        return _Steps(self.amount + other.amount, self.tied or other.tied)


_NO_STEPS = _Steps(Enclosure(0.0, 0.0), tied=False)


@dataclass(frozen=True, eq=False)
class StepsLikelihood(LevelLikelihood):
    """ℓ where the units are windows of consecutive steps, and the constants.

    With the constants held, the steps of a window are independent, so their amounts add up. Where
    a query ties a constant to a step, the window is taken as a whole. A window that starts at a
    step without a query contains no more than the one that starts at the next step with one.
    """

    level: Steps
    constants: UnitLikelihood
    #: The responses about each step, and these steps in order.
    at: dict[int, UnitLikelihood] = field(default_factory=dict)
    steps_asked: list[int] = field(default_factory=list)
    #: The step of the last response about one.
    latest: int | None = None
    #: The amounts of windows by their first step, as far as they are computed.
    losses: dict[int, WorstCase] = field(default_factory=dict)
    sums: dict[int, WorstCase] = field(default_factory=dict)

    @classmethod
    def start(cls, domain: Attributes, level: Steps) -> StepsLikelihood:
        """Return ℓ of no responses."""
        return cls(domain, level, UnitLikelihood.start(domain, Constants()))

    def _at(self, step: int) -> UnitLikelihood:
        return self.at.get(step) or UnitLikelihood.start(self.domain, Window(step, 1))

    def add(self, query: Query, position: int, *, counted: bool) -> StepsLikelihood:
        constants, step = self.constants, query.step
        if self._touches_constants(query):
            constants = constants.add(query, position, counted=counted)
        if step is None:
            return replace(self, constants=constants)
        at, steps_asked = self.at.copy(), self.steps_asked
        if step not in at:
            steps_asked = steps_asked.copy()
            insort(steps_asked, step)
        at[step] = self._at(step).add(query, position, counted=counted)
        changed = self.level.windows_at(step)
        losses, sums = (
            {first: case for first, case in cases.copy().items() if first not in changed}
            for cases in (self.losses, self.sums)
        )
        return StepsLikelihood(
            self.domain, self.level, constants, at, steps_asked, step, losses, sums
        )

    def _touches_constants(self, query: Query) -> bool:
        return self.constants.unit.touches(query.on(self.domain).variables)

    def losses_by_unit(self) -> dict[Unit, WorstCase]:
        self._largest(self.constants.loss, self.losses, _LOSS)
        return self._by_unit(self.constants.loss, self.losses)

    def sums_by_unit(self) -> dict[Unit, WorstCase]:
        self._largest(self.constants.spent, self.sums, _SPENT)
        return self._by_unit(self.constants.spent, self.sums)

    def _by_unit(self, constants: WorstCase, cases: dict[int, WorstCase]) -> dict[Unit, WorstCase]:
        by_unit: dict[Unit, WorstCase] = {}
        if len(self.constants.tally):
            by_unit[self.constants.unit] = constants
        for first in sorted(cases):
            by_unit[Window(first, self.level.width)] = cases[first]
        return by_unit

    @cached_property
    def loss(self) -> WorstCase:
        return self._largest(self.constants.loss, self.losses, _LOSS)

    @cached_property
    def spent(self) -> WorstCase:
        return self._largest(self.constants.spent, self.sums, _SPENT)

    def worst_after(self, query: Query, times: int) -> WorstCase:
        amount = _Amount(
            lambda step: step.worst_after(query, times), lambda both: both.worst_after(query, times)
        )
        return self._after(query, _LOSS, amount)

    def plus_epsilon(self, query: Query, times: int) -> WorstCase:
        if query.step is None:
            return largest_case([self.constants.plus_epsilon(query, times), self.loss])
        epsilon = UnitLikelihood.start(self.domain, Window(query.step, 1)).worst_after(query, 1)

        def after_twins(both: TwinLikelihood) -> WorstCase:
            before = both.loss if times == 1 else both.worst_after(query, times - 1)
            return sum_of_cases([before, epsilon])

        amount = _Amount(lambda step: step.plus_epsilon(query, times), after_twins)
        return self._after(query, _LOSS, amount)

    def spent_after(self, query: Query, times: int) -> WorstCase:
        return self._after(
            query, _SPENT, _Amount(lambda step: step.spent_after(query, times), None)
        )

    def _after(self, query: Query, now: _Amount, after: _Amount) -> WorstCase:
        """Return the largest amount after a query, which changes one step and the constants."""
        cases = [self.loss if now is _LOSS else self.spent]
        if self._touches_constants(query):
            cases.append(after.of_step(self.constants))
        if query.step is not None:
            step = self._at(query.step)
            ties = step.alone is None or not step.is_alone_with(query)
            cases += self._windows_around(query.step, now, after, ties=ties).values()
        return largest_case(cases[::-1])

    def _largest(
        self, constants: WorstCase, cases: dict[int, WorstCase], amount: _Amount
    ) -> WorstCase:
        """Return the largest amount over all units; those of windows are computed once."""
        known = cases.copy()  # threads share the likelihood
        if self.latest is not None and self.latest not in known:
            ties = self.at[self.latest].alone is None
            known.update(self._windows_around(self.latest, amount, amount, ties=ties))
        for first in self.steps_asked:
            if first not in known:
                ties = self.at[first].alone is None
                known.update(self._windows_around(first, amount, amount, ties=ties))
        cases.update(known)
        return largest_case([constants, *known.values()])

    def _windows_around(
        self, step: int, elsewhere: _Amount, here: _Amount, *, ties: bool
    ) -> dict[int, WorstCase]:
        """Return the amounts of all windows that contain a step, by their first steps.

        Args:
            step: The step.
            elsewhere: The amount that counts at all other steps.
            here: The amount that counts at the step, and in a window that is tied.
            ties: Whether the amount at the step ties it to constants.
        """
        width = self.level.width
        before = self._within(step - width + 1, step - 1)
        after = self._within(step + 1, step + width - 1)

        def sums(steps: Iterable[int]) -> list[_Steps]:
            each = (
                _Steps(elsewhere.of_step(self.at[other]).loss, self.at[other].alone is None)
                for other in steps
            )
            return list(accumulate(each, _Steps.plus, initial=_NO_STEPS))

        earlier, later = sums(reversed(before)), sums(after)
        at_step = None if ties and here.of_twins else here.of_step(self._at(step))
        result: dict[int, WorstCase] = {}
        for index, first in enumerate([*before, step]):
            count = bisect_left(after, first + width)
            rest, rest_steps = (
                earlier[len(before) - index].plus(later[count]),
                before[index:] + after[:count],
            )
            if here.of_twins is not None and (ties or rest.tied):
                result[first] = here.of_twins(self._together(first, [*rest_steps, step]))
                continue
            assert at_step is not None
            cases = [at_step, *(elsewhere.of_step(self.at[other]) for other in rest_steps)]
            result[first] = sum_of_cases(cases, at_step.loss + rest.amount)
        return result

    def _within(self, first: int, last: int) -> list[int]:
        """Return the steps from the first to the last that a query was about."""
        return self.steps_asked[
            bisect_left(self.steps_asked, first) : bisect_right(self.steps_asked, last)
        ]

    def _together(self, first: int, steps: Sequence[int]) -> TwinLikelihood:
        """Return the difference of ℓ of two histories, from all responses of a window."""
        if self.level.width == 1:
            return self._at(first).twins
        tables = [table for step in steps for table in self._at(step).tables]
        return TwinLikelihood.of(Twins(self.domain, Window(first, self.level.width)), tables)
