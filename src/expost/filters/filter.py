"""What all filters share: a budget, and a decision that is pure and exact."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Self

from expost.domains import Value
from expost.errors import InvalidInput, expect
from expost.filters.decision import Decision, remaining
from expost.filters.largest import Trial, largest_epsilon, nearly_largest_epsilon
from expost.filters.repeats import Repeats, most_repeats
from expost.loss.log_likelihood import LogLikelihood
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure, ExactLike, Nats, decimal_text
from expost.queries import Query, check_query
from expost.transcript import FilterSpec

__all__ = ["Filter", "WorstCase"]

_NODES_FOR_EPSILON = 4_000


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

    def close(self, budget: Nats) -> bool:
        """Whether only an exact comparison can tell."""
        limit = budget.enclosure
        return (
            self.exact is not None
            and self.loss.lower <= limit.upper
            and self.loss.upper > limit.lower
        )

    def undecided(self, budget: Nats) -> bool:
        """Whether the loss may be on either side of the budget."""
        return self.exact is None and not self.within(budget) and not self._surely_over(budget)

    def _surely_over(self, budget: Nats) -> bool:
        lower = self.loss.lower
        return lower == math.inf or Nats(Fraction(lower)) > budget


@dataclass(frozen=True, init=False, repr=False)
class Filter(ABC):
    """Accepts a query only if its worst case stays within the budget.

    The budget is ``epsilon`` in nats or ``ratio`` = e^epsilon; both are exact.
    """

    kind: ClassVar[str]
    pure: ClassVar[bool] = True
    """Whether there is no delta, neither in the budget nor in what may be asked."""
    by_loss: ClassVar[bool] = True
    """Whether what is held against the budget is the realized loss, and no sum or cost."""
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
        return self.spec.limit

    def loss(self, odometer: Odometer) -> Enclosure:
        """What this filter holds against its budget so far; the realized loss, if not said else."""
        return self.realized(odometer)

    def realized(self, odometer: Odometer) -> Enclosure:
        """The realized loss now, on one side of the budget of a pure filter if that can be told.

        On a box the budget may be between the bounds that a search found. Then it is enough that
        this filter accepts the last query on what came before; if not, the search goes on.
        """
        loss, limit = odometer.loss, self.budget.enclosure
        if not self.pure or not loss.lower <= limit.upper < loss.upper:
            return loss
        if self._last_was_accepted(odometer):
            return self.capped(loss)
        return odometer.loss_against(limit.lower)

    def capped(self, loss: Enclosure) -> Enclosure:
        """A loss that is known to be within the budget, whatever a search for it found."""
        return Enclosure(loss.lower, min(loss.upper, self.budget.enclosure.upper))

    def _last_was_accepted(self, odometer: Odometer) -> bool:
        if isinstance(odometer.log_likelihood, LogLikelihood):
            return odometer.exact_loss <= self.budget
        before = odometer.prefix(len(odometer) - 1)
        return self.accepts(before, odometer.transcript.exchanges[-1].query)

    def exact_loss(self, odometer: Odometer) -> Nats:
        """The same over a finite domain, exactly."""
        return odometer.exact_loss

    def holds(self, odometer: Odometer) -> bool | None:
        """Whether what is held so far is within the budget; None if that is not known.

        A verdict about the end: whether the budget was kept on the way is for :func:`replay`.
        """
        loss, limit = self.loss(odometer), self.budget.enclosure
        if loss.upper <= limit.lower or odometer.exact_spent <= self.budget:
            return True
        if loss.lower > limit.upper:
            return False
        if isinstance(odometer.log_likelihood, LogLikelihood):
            return self.exact_loss(odometer) <= self.budget
        return self._last_was_accepted(odometer) or None

    @abstractmethod
    def worst_case(self, odometer: Odometer, query: Query, times: int = 1) -> WorstCase:
        """What this filter would hold against its budget after the query, at worst.

        Asked so many times in a row; it never falls with their number.
        """

    def accepts(self, odometer: Odometer, query: Query) -> bool:
        """Whether the query is accepted, and nothing else."""
        return self.verdict(odometer, query) is True

    def verdict(self, odometer: Odometer, query: Query) -> bool | None:
        """Whether the condition of this filter holds; None where a search could not tell."""
        if self.pure and query.approximate:
            return False
        if self.pure and self.by_loss and isinstance(odometer.log_likelihood, LogLikelihood):
            # No response adds more than the nominal epsilon, and that is most often enough.
            most = odometer.loss + query.ceiling(odometer.transcript.domain).enclosure
            if most.upper <= self.budget.enclosure.lower:
                return True
        worst = self.worst_case(odometer, query)
        if worst.close(self.budget):
            # It goes through all that was summed up, so it counts where searches do.
            odometer.effort.charge(1 + odometer.different // 4)
        return None if worst.undecided(self.budget) else worst.within(self.budget)

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
            variant.on(odometer.transcript.domain)
            worst = self.worst_case(odometer, variant)
            middle = (worst.loss.lower + worst.loss.upper) / 2
            excess = worst.loss.upper if worst.exact else middle
            return worst.within(self.budget), excess - self.budget.enclosure.upper

        if isinstance(odometer.log_likelihood, LogLikelihood):
            largest = largest_epsilon(query, attempt, self.remaining(odometer))
        else:
            # Every attempt is a search, and all of them together have one limit.
            effort = odometer.effort.within(min(odometer.effort.most, _NODES_FOR_EPSILON))
            odometer = odometer.prefix(len(odometer), effort)
            guess = self.remaining(odometer)
            largest = nearly_largest_epsilon(query, attempt, guess, lambda: effort.used_up)
        return None if largest is None else Decimal(decimal_text(largest))

    def __repr__(self) -> str:
        rational, ratio = self.budget.rational, self.budget.ratio
        shown = f"epsilon={decimal_text(rational)}" if rational else f"ratio={ratio}"
        return f"{type(self).__name__}({shown})"


def _check_asked(odometer: Odometer, query: Query) -> None:
    expect(odometer, Odometer, "an odometer: Odometer(transcript)")
    check_query(query)
    # A sum of epsilons may fit whatever the query is about; it has to be one of this domain.
    query.on(odometer.transcript.domain)
