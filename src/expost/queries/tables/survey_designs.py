"""Survey designs for sensitive questions, by their published names, as channels on two values.

In each of them the second value of the domain is the sensitive one, as "yes" is in no, yes. Give
the probabilities of the design, or the epsilon that it may have at most. The probability for an
epsilon is rounded down to nine decimals, so that the channel never exceeds it;
``channel.charge(domain)`` is the epsilon that the channel has.

References: Warner (1965); Greenberg, Abul-Ela, Simmons and Horvitz (1969), the unrelated question;
Boruch (1971), forced responses; Yu, Tian and Tang (2008), the crosswise model.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from typing import Any

from expost.errors import InvalidInput, at, read_at
from expost.numbers import LARGEST_BUDGET, ExactLike, exact, positive
from expost.queries.tables.channel import Channel, channel

__all__ = ["SURVEY_DESIGNS", "crosswise", "forced_response", "unrelated_question", "warner"]

SURVEY_DESIGNS = ("warner", "forced_response", "crosswise", "unrelated_question")

_STEP = Fraction(1, 10**9)
#: More than what sixty digits of an exponential may be off.
_BELOW = 1 - Fraction(1, 10**50)


def warner(
    p: ExactLike | None = None,
    *,
    epsilon: ExactLike | None = None,
    responses: Sequence[Any] = ("no", "yes"),
) -> Channel:
    """Ask whether a statement is true, or else whether its opposite is, as a random device says.

    Args:
        p: The probability of the statement itself; its opposite has the rest.
        epsilon: The largest epsilon, instead of ``p``.
        responses: What is answered if the statement that was chosen is false, and if it is true.

    >>> warner("3/4")
    Channel(2 values, 2 responses)
    """
    _check_one_of(p, epsilon, "p")
    truth = _truth_of(epsilon, Fraction(1, 2)) if p is None else 2 * _probability(p, "p") - 1
    return _truth_or_else(truth, Fraction(1, 2), responses)


def crosswise(
    prevalence: ExactLike | None = None,
    *,
    epsilon: ExactLike | None = None,
    responses: Sequence[Any] = ("different", "same"),
) -> Channel:
    """Ask whether the answers to the question and to a harmless one are the same.

    The harmless question must be independent of the sensitive one, and nobody who sees the response
    may know the answer to it: for instance whether a birthday is in the first three months.

    Args:
        prevalence: The share of "yes" among answers to the harmless question.
        epsilon: The largest epsilon, instead of ``prevalence``.
        responses: What is answered if the two answers differ, and if they are the same.

    >>> crosswise("1/4").responses
    ('different', 'same')
    """
    _check_one_of(prevalence, epsilon, "prevalence")
    if prevalence is None:
        return warner(epsilon=epsilon, responses=responses)
    return warner(_probability(prevalence, "prevalence"), responses=responses)


def forced_response(
    truth: ExactLike | None = None,
    *,
    yes: ExactLike = "1/2",
    epsilon: ExactLike | None = None,
    responses: Sequence[Any] = ("no", "yes"),
) -> Channel:
    """Ask for the truth, or for a fixed response, as a random device says.

    Args:
        truth: The probability of the true answer.
        yes: The probability of "yes" if the response is forced.
        epsilon: The largest epsilon, instead of ``truth``.
        responses: What is answered for the first value, and for the sensitive one.

    >>> forced_response("3/4", yes="2/3")
    Channel(2 values, 2 responses)
    """
    return _mix(truth, "truth", yes, "yes", epsilon, responses)


def unrelated_question(
    p: ExactLike | None = None,
    *,
    prevalence: ExactLike,
    epsilon: ExactLike | None = None,
    responses: Sequence[Any] = ("no", "yes"),
) -> Channel:
    """Ask the sensitive question, or a harmless one, as a random device says.

    The harmless question must be independent of the sensitive one, and nobody who sees the response
    may know the answer to it.

    Args:
        p: The probability of the sensitive question.
        prevalence: The share of "yes" among answers to the harmless question, which is known.
        epsilon: The largest epsilon, instead of ``p``.
        responses: What is answered for "no", and for "yes".

    >>> unrelated_question("7/10", prevalence="1/4")
    Channel(2 values, 2 responses)
    """
    return _mix(p, "p", prevalence, "prevalence", epsilon, responses)


def _mix(
    truth: ExactLike | None,
    truth_name: str,
    yes: ExactLike,
    yes_name: str,
    epsilon: ExactLike | None,
    responses: Sequence[Any],
) -> Channel:
    _check_one_of(truth, epsilon, truth_name)
    otherwise = _probability(yes, yes_name)
    if not 0 < otherwise < 1:
        reason = f"must be above 0 and below 1, not {otherwise}"
        reason += "; otherwise a response can prove the value"
        raise InvalidInput(reason, yes_name)
    if truth is None:
        return _truth_or_else(
            _truth_of(epsilon, min(otherwise, 1 - otherwise)), otherwise, responses
        )
    return _truth_or_else(_probability(truth, truth_name), otherwise, responses)


def _truth_or_else(truth: Fraction, yes: Fraction, responses: Sequence[Any]) -> Channel:
    """Return the true value with a probability, and else the sensitive one with another."""
    rows = [[value * truth + share * (1 - truth) for value, share in ((1 - x, 1 - yes), (x, yes))]
            for x in (0, 1)]  # fmt: skip
    return channel(rows, responses=responses)


def _truth_of(epsilon: ExactLike | None, rarer: Fraction) -> Fraction:
    """Return the probability of the truth for an epsilon, where a forced response is rarer.

    The likelihood ratio of the rarer response is (t + (1 - t) m) / ((1 - t) m).
    """
    assert epsilon is not None
    amount = read_at("epsilon", positive, epsilon, at_most=LARGEST_BUDGET)
    with localcontext(prec=60, rounding=ROUND_DOWN):
        ratio = Fraction((Decimal(amount.numerator) / Decimal(amount.denominator)).exp())
    odds = rarer * (ratio * _BELOW - 1)
    return (odds / (1 + odds)) // _STEP * _STEP


def _probability(written: ExactLike, name: str) -> Fraction:
    with at(name):
        probability = exact(written)
        if not 0 <= probability <= 1:
            raise InvalidInput(f"got {written}; expected a probability between 0 and 1")
    return probability


def _check_one_of(probability: Any, epsilon: Any, name: str) -> None:
    if (probability is None) == (epsilon is None):
        raise InvalidInput(f"expected one of {name} and epsilon")
