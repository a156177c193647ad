"""The assumptions of an estimate, and reasons to doubt them.

Means and frequencies are unbiased only if responses did not decide who was asked. The likelihood of
a distribution stays valid under a filter, if all responses that the filter saw are here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from expost._format import format_count
from expost.answers import REFUSED, Answers, PartialView
from expost.domains import Attributes, Box, FiniteSet, Part, join_names
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter

__all__ = ["Provenance", "confidence_text", "finite_domain", "read_answers", "required_filter"]


_SAMPLE = "the subjects are a random sample"
_WHATEVER = f"{_SAMPLE}, and who was asked what did not depend on responses"
_ALL = (
    f"{_SAMPLE}, these are all responses that a filter looked at, "
    "and no value changed between them unless it is declared as changing"
)
_PART = (
    "the answers are incomplete: who was asked may depend on what is missing, "
    "and estimates can be biased"
)
_HIDDEN = (
    f"{_SAMPLE}, these are all attempts to ask them in their order, what was asked next depended "
    "on nothing hidden but what the filter accepted, and no value changed unless it is declared "
    "as changing"
)
_FILTERED = (
    "the answers were given under a filter that looks at responses, so this estimate is biased; "
    "estimate_distribution is not, if these are all responses"
)


@dataclass(frozen=True, slots=True)
class Provenance:
    """The data that an estimate was made from, its assumptions, and reasons to doubt them."""

    subjects: int
    """How many subjects gave the responses."""
    responses: int
    refused: int | None
    """How many subjects were refused the query, or any of the queries; None if not known."""
    assumes: str
    doubts: tuple[str, ...]
    """Reasons why the assumptions may not hold."""

    @classmethod
    def of(
        cls,
        answers: Answers,
        subjects: int,
        responses: int,
        query: str | None,
        *,
        by_likelihood: bool,
    ) -> Provenance:
        return cls(
            subjects,
            responses,
            answers.refused_subjects(query),
            _ALL if by_likelihood and answers.complete else _WHATEVER,
            _doubts(answers, query, by_likelihood=by_likelihood),
        )

    @classmethod
    def of_views(cls, answers: Answers, views: Counter[PartialView]) -> Provenance:
        """Describe an estimate from views with hidden responses, where all attempts are known."""
        refused = sum(
            subjects
            for view, subjects in views.items()
            if any(attempt.outcome == REFUSED for attempt in view)
        )
        return cls(views.total(), len(answers.codes), refused, _HIDDEN, ())

    def tree(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    def amount(self) -> str:
        """Count responses and subjects, in words."""
        responses = format_count(self.responses, "response")
        return f"{responses} of {format_count(self.subjects, 'subject')}"

    def facts(self) -> dict[str, str]:
        """Return labelled texts for people."""
        refused = None if self.refused is None else format_count(self.refused, "subject")
        return {
            "used": self.amount(),
            **({} if refused is None else {"refused": refused}),
            "assumes": self.assumes,
            **({"but": "; ".join(self.doubts)} if self.doubts else {}),
        }


def read_answers(
    answers: Any, domain: Any, query: str | None = None, *, by_likelihood: bool = False
) -> Answers:
    """Return answers, or make them from pairs, each from a different subject.

    Warn of whatever biases an estimate from them, or from the responses to one ``query``. A filter
    does not bias estimates ``by_likelihood``. The warning points to the caller's caller, which is
    the user's code.
    """
    if isinstance(answers, Answers):
        if domain is not None and domain != answers.domain:
            raise InvalidInput("is not that of the answers, which have one", "domain")
        for doubt in _doubts(answers, query, by_likelihood=by_likelihood):
            warnings.warn(doubt, UserWarning, stacklevel=3)
        return answers
    return Answers.of_pairs(domain, answers)


def required_filter(answers: Any) -> Filter:
    """Return the filter that answers name, which decides what hidden responses were possible."""
    with at("answers"):
        expect(answers, Answers, "Answers, if there are attempts")
    assert isinstance(answers, Answers)
    if isinstance(answers.domain, Part):
        raise InvalidInput(
            "a filter decides by the whole record: say about=… in place of answers.about(…)",
            "attempts",
        )
    if answers.filter is None:
        raise InvalidInput("the answers must name it: Answers(…, filter=…)", "filter")
    return answers.filter


def _doubts(answers: Answers, query: str | None, *, by_likelihood: bool) -> tuple[str, ...]:
    filtered = not by_likelihood and answers.by_responses
    if (answers.complete and not filtered) or answers.evenly(query):
        return ()
    doubts = [] if answers.complete else [_PART]
    return (*doubts, _FILTERED) if filtered else tuple(doubts)


def finite_domain(answers: Answers) -> FiniteSet:
    """Return the domain of answers; raise an error unless it is finite."""
    domain = answers.domain
    match domain:
        case FiniteSet():
            return domain
        case Attributes():
            names = join_names(domain.names)
            message = f"of which attributes? Take answers.about(…) some of {names}"
            raise InvalidInput(message, "domain")
        case Box():
            message = "must be a finite set: the values of a box cannot be listed"
            raise InvalidInput(message, "domain")
        case _:
            assert_never(domain)


def confidence_text(confidence: float) -> str:
    """Format a confidence: ``95 %``."""
    return f"{100 * confidence:.6g} %"
