"""What a design recommends, in sentences: what to do, why, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator

from expost.designs import Arrival, Design, Prediction
from expost.queries.words import listed

__all__ = ["advice", "error_text", "reasons"]

_ONE_SHOT = ("one random question", "the value once", "all answers at once", "the question once")


def error_text(error: float) -> str:
    """A standard error for people, three digits."""
    return f"{error:.3g}" if math.isfinite(error) else "not determined"


def advice(found: Design) -> str:
    """What to do, in one or two sentences."""
    best = found.recommended
    if best is None:
        return "No way of asking determines all goals within this budget."
    return (
        f"{_capital(best.name)}: {best.policy.words} All goals together then have a standard "
        f"error of {error_text(best.error)}."
    )


def reasons(found: Design) -> Iterator[str]:
    """Why, against what else one might do, and how sure that is."""
    best = found.recommended
    if best is None:
        return
    alike = found.alike
    if alike:
        names = listed([each.name for each in alike])
        yield (
            f"{_capital(names)} {'is' if len(alike) == 1 else 'are'} as good within the error of "
            "the simulation, or within one per cent."
        )
    others: dict[str, Prediction | None] = {
        "basic composition at its best": found.best_of("basic composition"),
        "the Bayesian filter with randomized responses at its best": found.best_of(
            "the Bayesian filter"
        ),
        "the best single answer at the full budget": found.best_of(*_ONE_SHOT),
        "saturating questions at their best": found.best_of("saturating questions"),
    }
    for name, other in others.items():
        if other is None or other is best or other in alike:
            continue
        more = other.error / best.error
        yield (
            f"{_capital(name)} has {error_text(other.error)}, {more:.2f} times as much: it would "
            f"take {_subjects(found, more)} subjects for the same accuracy."
        )
    better = [each for each in found.predictions if not each.possible and each.error < best.error]
    if better:
        name, error = _capital(better[0].name), error_text(better[0].error)
        yield f"{name} would have {error}, but {_why_not(found)}."
    if best.policy.family in _ONE_SHOT and found.study.arrival is Arrival.TOGETHER:
        yield (
            "Whatever a filter lets through is one channel within the same budget, so for goals "
            "that are known beforehand no sequence of questions beats the best single one."
        )


def _subjects(found: Design, ratio: float) -> str:
    number = found.study.subjects * ratio**2
    digits = max(0, int(math.log10(number)) - 1)
    return f"about {round(number, -digits):,.0f}"


def _why_not(found: Design) -> str:
    if found.study.arrival is Arrival.OPEN:
        return "it needs to know the questions, or their number, beforehand"
    return "it needs to know all questions beforehand"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
