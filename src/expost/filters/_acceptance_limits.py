"""The largest epsilon with which a query is accepted, and how often it can be repeated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from expost.errors import InvalidInput
from expost.numbers import Nats
from expost.queries import LARGEST_EPSILON, Query

if TYPE_CHECKING:
    from expost.filters._account import WorstCase

__all__ = ["MOST_REPEATS", "Repeats", "largest_epsilon", "most_repeats", "nearly_largest_epsilon"]


_STEP = Fraction(1, 10**10)
_ATTEMPTS = 12
_STRIDES = 64

#: Whether a variant of the query is accepted, and by how much its worst case exceeds the budget.
Trial = tuple[bool, float]


def largest_epsilon(
    query: Query, attempt: Callable[[Query], Trial], remaining: float
) -> Fraction | None:
    """Find an epsilon on a grid of 1e-10 that is accepted while one step more is not.

    Where acceptance is monotone in epsilon this is the largest accepted one. Where it need not be,
    it is the end of the accepted interval that starts at 0. ``remaining`` and the distances to the
    budget only guide the search, which ends at the largest epsilon that a query may have. None if
    nothing fits. Proof, and where the edge is ragged: docs/theory/filters.md.
    """
    if query.epsilon is None:
        return None

    def trial(steps: int) -> Trial:
        return _attempt_epsilon(query, steps * _STEP, attempt)

    most = int(LARGEST_EPSILON / _STEP)
    low = min(most, int(Fraction(remaining) / _STEP))
    if query.steepness is not None:
        low = _surely_accepted(trial, low, most, query.steepness)
    below = -math.inf
    # Most queries fit what remains and not a step more, so the search leaves from there in
    # strides that grow.
    stride = 1
    while low > 0:
        accepted, below = trial(low)
        if accepted:
            break
        low, stride = max(0, low - stride), stride * 32
    high, stride, above = low + 1, 1, math.inf
    while high <= most:
        accepted, above = trial(high)
        if not accepted:
            break
        low, below, stride = high, above, stride * 32
        high = min(low + stride, most + 1)
    # False position, where the weight of an end that stays is halved (the Illinois rule).
    while high - low > 1:
        share = below / (below - above) if -math.inf < below < 0 < above < math.inf else 0.5
        middle = min(high - 1, max(low + 1, low + int(share * (high - low))))
        accepted, excess = trial(middle)
        if accepted:
            low, below, above = middle, excess, above / 2
        else:
            high, above, below = middle, excess, below / 2
    return low * _STEP if low else None


def _surely_accepted(
    trial: Callable[[int], Trial], low: int, most: int, steepness: Fraction
) -> int:
    """Return a number of steps above ``low`` up to which nothing is refused.

    Each stride is as long as the worst case certainly stays within the budget.
    """
    for _ in range(_STRIDES if low else 0):
        accepted, excess = trial(low)
        stride = int(Fraction(-excess) / steepness / _STEP) if accepted else 0
        if stride < 1 or low == most:
            break
        low = min(most, low + stride)
    return low


def nearly_largest_epsilon(
    query: Query,
    attempt: Callable[[Query], Trial],
    remaining: float,
    used_up: Callable[[], bool],
) -> Fraction | None:
    """Find an accepted epsilon of four digits that is close to the largest, in few attempts.

    If every attempt is a search, the last digits would cost more than they are worth. Once the
    attempts have used up their shared nodes, it is the largest one that was accepted so far.
    """
    if query.epsilon is None:
        return None
    low, high = Fraction(0), Fraction(LARGEST_EPSILON)
    below, above = -math.inf, math.inf
    guess = min(remaining, LARGEST_EPSILON / 2)
    for _ in range(_ATTEMPTS):
        epsilon = _four_digits(guess)
        if not low < epsilon < high or used_up():
            break
        accepted, excess = _attempt_epsilon(query, epsilon, attempt)
        if accepted:
            low, below = epsilon, excess
        else:
            high, above = epsilon, excess
        if low == 0:
            guess = float(high) / 2
        elif high == LARGEST_EPSILON:
            guess = float(low) * 1.5
        elif high - low <= low / 100:
            break
        else:
            # Never quite at the ends, or the search would creep.
            share = below / (below - above) if below < 0 < above < math.inf else 0.5
            guess = float(low) + min(0.9, max(0.1, share)) * float(high - low)
    return low or None


def _attempt_epsilon(query: Query, epsilon: Fraction, attempt: Callable[[Query], Trial]) -> Trial:
    """Try the query with another epsilon, and refuse one that it cannot have.

    A grid of noise, for example, can be too fine for a small epsilon.
    """
    variant = query.with_epsilon(epsilon)
    assert variant is not None, "a query with an epsilon can have another one"
    try:
        return attempt(variant)
    except InvalidInput:
        return False, math.inf


def _four_digits(epsilon: float) -> Fraction:
    """Round an epsilon down to four digits, as a person would write it."""
    if epsilon < 1e-300:
        return Fraction(0)
    exponent = math.floor(math.log10(epsilon)) - 3
    return math.floor(Fraction(epsilon) / Fraction(10) ** exponent) * Fraction(10) ** exponent


#: Where counting stops: a query that reveals nothing could be asked for ever.
MOST_REPEATS = 1_000_000


@dataclass(frozen=True, slots=True)
class Repeats:
    """The number of times in a row that a query is accepted, whatever the responses.

    One more may be refused after some responses, or counting stopped.
    """

    count: int
    #: Whether one more is refused only because a search ended undecided.
    undecided: bool = False


def most_repeats(worst_case: Callable[[int], WorstCase], budget: Nats) -> Repeats:
    """Find the largest number of repeats with a worst case within the budget, by bisection."""
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
