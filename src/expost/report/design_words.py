"""What a design recommends, in sentences: what to do, why, and by how much."""

from __future__ import annotations

import math
from collections.abc import Iterator

from expost.designs import Arrival, Design, Prediction

__all__ = ["advice", "error_text", "reasons"]

_ONE_SHOT = ("one sampled question", "full-value report", "joint report", "single question")

_NEAR = 1.1


def error_text(error: float) -> str:
    """A standard error for people, three digits."""
    return f"{error:.3g}" if math.isfinite(error) else "not determined"


def advice(found: Design) -> str:
    """What to do, in one or two sentences."""
    best = found.recommended
    if best is None:
        return "No study design determines all goals within this budget."
    several = len(found.study.goals) > 1
    what = "All goals together then have" if several else "The goal then has"
    means = any(target.scale != 1 for target in found.study.model.targets)
    unit = f", {'means' if several else 'it is'} relative to the range of a score" if means else ""
    return (
        f"{_capital(best.name)}: {best.strategy.description} {what} a standard error of "
        f"{error_text(best.error)}{unit}."
    )


def reasons(found: Design) -> Iterator[str]:
    """Why, against what else one might do, and how sure that is."""
    best = found.recommended
    if best is None:
        return
    alike = found.alike
    if not _as_in_the_limit(found, best):
        yield (
            "So little is learned within this budget that errors are bounded by the range of what "
            "is estimated, more than by the answers: which design is best says little before there "
            "are more subjects or a larger budget."
        )
    if best.delta:
        yield from _at_the_stronger_guarantee(found, best)
    if alike:
        # Names have commas in them.
        names = ", ".join(f"“{each.name}”" for each in alike)
        weaker = any(each.delta for each in alike) and not best.delta
        yield (
            f"{names} {'is' if len(alike) == 1 else 'are'} as good within the error of "
            "the simulation, or within one per cent"
            f"{'; with a delta the guarantee is weaker' if weaker else ''}."
        )
    others: dict[str, Prediction | None] = {
        "basic composition at its best": found.best_of("basic composition"),
        "the Bayesian filter with randomized responses at its best": found.best_of(
            "the Bayesian filter"
        ),
        "the best single answer at the full budget": found.best_of(*_ONE_SHOT),
        "saturating queries at their best": found.best_of("saturating queries"),
    }
    for name, other in others.items():
        if other is None or other is best or other in alike:
            continue
        has = "have" if "their" in name else "has"
        yield f"{_capital(name)} {has} {_against(found, other, best)}"
    better = [
        each
        for each in found.predictions
        if not each.possible and each.error < best.error and not each.like(best)
    ]
    if better:
        name, error = _capital(better[0].name), error_text(better[0].error)
        yield f"{name} would have {error}, but {_why_not(found)}."
    if best.strategy.family in _ONE_SHOT and found.study.arrival is Arrival.UP_FRONT:
        yield (
            "Whatever a filter lets through is one channel within the same budget, so for goals "
            "that are known beforehand no sequence of questions beats the best single one."
        )


def _at_the_stronger_guarantee(found: Design, best: Prediction) -> Iterator[str]:
    """What the weaker guarantee of the recommended one is worth."""
    pure = [each for each in found.predictions if each.possible and not each.delta]
    if pure and math.isfinite(pure[0].error):
        yield (
            "This is the weaker guarantee, with a delta. Of those that have the stronger one "
            f"“{pure[0].name}” is the most accurate. It has {_against(found, pure[0], best)}"
        )


def _against(found: Design, other: Prediction, best: Prediction) -> str:
    """The error of another one, and what it would take to make up for that."""
    ratio = other.error / best.error
    text = f"{error_text(other.error)}, {ratio:.2f} times as much"
    if not _as_in_the_limit(found, other):
        return f"{text}."
    return f"{text}: it would take {_subjects(found, ratio)} subjects for the same accuracy."


def _as_in_the_limit(found: Design, each: Prediction) -> bool:
    """Whether an error is what it is for many subjects, and so falls with the root of them."""
    scales = [target.scale for target in found.study.model.targets]
    limits = zip(each.accuracy.asymptotic, scales, strict=True)
    limit = math.sqrt(sum((error / scale) ** 2 for error, scale in limits) / len(scales))
    return limit <= _NEAR * each.error


def _subjects(found: Design, ratio: float) -> str:
    number = found.study.subjects * ratio**2
    digits = max(0, int(math.log10(number)) - 1)
    return f"about {round(number, -digits):,.0f}"


def _why_not(found: Design) -> str:
    if found.study.arrival is Arrival.OPEN_ENDED:
        return "it needs to know the questions, or their number, beforehand"
    return "it needs to know all questions beforehand"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
