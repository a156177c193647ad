"""How many times in a row a query would be accepted, whatever the responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from expost.numbers import Nats

if TYPE_CHECKING:
    from expost.filters.account import WorstCase

__all__ = ["MOST_REPEATS", "Repeats", "most_repeats"]

MOST_REPEATS = 1_000_000
"""Where counting stops: a query that reveals nothing could be asked for ever."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """How many times in a row a query is accepted, whatever the responses.

    One more may be refused after some responses, or counting stopped.
    """

    count: int
    undecided: bool = False
    """Whether one more is refused only because a search ended undecided."""


def most_repeats(worst_case: Callable[[int], WorstCase], budget: Nats) -> Repeats:
    """The largest number of times whose worst case, which never falls, is within the budget."""
    accepted, refused, undecided = 0, MOST_REPEATS + 1, False
    trial = 1
    while accepted + 1 < refused:
        worst = worst_case(trial)
        if worst.within(budget):
            accepted = trial
        else:
            refused, undecided = trial, worst.undecided(budget)
        doubled = min(2 * trial, MOST_REPEATS)
        trial = doubled if refused > MOST_REPEATS else (accepted + refused) // 2
    return Repeats(accepted, undecided)
