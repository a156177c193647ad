"""What all filters share: a budget, and a decision that is pure and exact."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Self

from expost.accounting.decision import Decision, remaining
from expost.accounting.largest import Trial, largest_epsilon, nearly_largest_epsilon
from expost.accounting.odometer import Odometer
from expost.accounting.repeats import Repeats, most_repeats
from expost.domains import Value
from expost.errors import InvalidInput, expect
from expost.likelihood import LogLikelihood
from expost.queries import Query, check_query
from expost.rounding import Enclosure, ExactLike, Nats, decimal_text
from expost.transcript import FilterSpec

__all__ = ["Filter", "WorstCase"]


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The loss that a filter fears from a query: in doubles, and exactly where that is needed.

    Over a box there is nothing exact, and a loss that is not known to be within the budget is
    taken to be above it.
    """

    loss: Enclosure
    exact: Callable[[], Nats] | None = None
    response: Value | None = None

    def within(self, budget: Nats) -> bool:
        """Whether the loss is at most the budget."""
        if self.loss.upper <= budget.enclosure.lower:
            return True
        if self.loss.lower > budget.enclosure.upper or self.exact is None:
            return False
        return self.exact() <= budget

    def undecided(self, budget: Nats) -> bool:
        """Whether the loss may be on either side of the budget."""
        surely_over = self.loss.lower > budget.enclosure.lower
        return self.exact is None and not self.within(budget) and not surely_over


@dataclass(frozen=True, init=False, repr=False)
class Filter(ABC):
    """Accepts a query only if its worst case stays within the budget.

    The budget is ``epsilon`` in nats or ``ratio`` = e^epsilon; both are exact.
    """

    kind: ClassVar[str]
    pure: ClassVar[bool] = True
    """Whether there is no delta, neither in the budget nor in what may be asked."""
    budget: Nats

    def __init__(self, epsilon: ExactLike | None = None, *, ratio: ExactLike | None = None) -> None:
        object.__setattr__(self, "budget", Nats.budget(epsilon, ratio))

    @classmethod
    def of(cls, budget: Nats) -> Self:
        """The filter with an exact budget."""
        result = object.__new__(cls)
        object.__setattr__(result, "budget", FilterSpec(cls.kind, budget).budget)
        return result

    @classmethod
    def of_spec(cls, spec: FilterSpec) -> Self:
        """The filter that a transcript file names."""
        return cls.of(spec.budget)

    @property
    def spec(self) -> FilterSpec:
        """How a transcript file names this filter."""
        return FilterSpec(self.kind, self.budget)

    @property
    def limit(self) -> str:
        """The budget for people."""
        return str(self.budget)

    def loss(self, odometer: Odometer) -> Enclosure:
        """What this filter holds against its budget so far; the realized loss, if not said else."""
        return odometer.loss

    def exact_loss(self, odometer: Odometer) -> Nats:
        """The same over a finite domain, exactly."""
        return odometer.exact_loss

    def holds(self, odometer: Odometer) -> bool | None:
        """Whether what was answered so far is within the budget; None if that is not known."""
        loss, limit = self.loss(odometer), self.budget.enclosure
        if loss.upper <= limit.lower or odometer.exact_spent <= self.budget:
            return True
        if loss.lower > limit.upper:
            return False
        if isinstance(odometer.log_likelihood, LogLikelihood):
            return self.exact_loss(odometer) <= self.budget
        return None

    @abstractmethod
    def worst_case(self, odometer: Odometer, query: Query, times: int = 1) -> WorstCase:
        """What this filter would hold against its budget after the query, at worst.

        Asked so many times in a row; it never falls with their number.
        """

    def accepts(self, odometer: Odometer, query: Query) -> bool:
        """Whether the query is accepted, and nothing else."""
        if self.pure and query.approximate:
            return False
        return self.worst_case(odometer, query).within(self.budget)

    def more(self, odometer: Odometer, query: Query) -> Repeats:
        """How many times in a row the query would be accepted, whatever the responses."""
        _check_asked(odometer, query)
        if self.pure and query.approximate:
            return Repeats(0)
        return most_repeats(lambda times: self.worst_case(odometer, query, times), self.budget)

    def remaining(self, odometer: Odometer) -> float:
        """Budget minus loss, rounded down."""
        return remaining(self.budget, self.loss(odometer))

    def decide(self, odometer: Odometer, query: Query) -> Decision:
        """Say whether the query is accepted. Changes nothing, and needs no secret."""
        _check_asked(odometer, query)
        if self.pure and query.approximate:
            raise InvalidInput("needs a filter with a delta, such as ApproximateFilter", "query")
        worst = self.worst_case(odometer, query)
        return Decision(
            accepted=worst.within(self.budget),
            loss_at_worst=worst.loss,
            worst_response=worst.response,
            budget=self.budget,
            undecided=worst.undecided(self.budget),
            _asked=(self, odometer, query),
        )

    def largest_epsilon(self, odometer: Odometer, query: Query) -> Decimal | None:
        """The largest epsilon that is found with which the query would be accepted."""

        def attempt(variant: Query) -> Trial:
            worst = self.worst_case(odometer, variant)
            middle = (worst.loss.lower + worst.loss.upper) / 2
            excess = worst.loss.upper if worst.exact else middle
            return worst.within(self.budget), excess - self.budget.enclosure.upper

        exact = isinstance(odometer.log_likelihood, LogLikelihood)
        search = largest_epsilon if exact else nearly_largest_epsilon
        largest = search(query, attempt, self.remaining(odometer))
        return None if largest is None else Decimal(decimal_text(largest))

    def __repr__(self) -> str:
        rational, ratio = self.budget.rational, self.budget.ratio
        shown = f"epsilon={decimal_text(rational)}" if rational else f"ratio={ratio}"
        return f"{type(self).__name__}({shown})"


def _check_asked(odometer: Odometer, query: Query) -> None:
    expect(odometer, Odometer, "an odometer: Odometer(transcript)")
    check_query(query)
