"""What estimates are made from: answers of many subjects, or pairs of a query and a response."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from expost._format import format_count
from expost.answers import Answers, View
from expost.answers.attempts import REFUSED
from expost.domains import Attributes, Box, FiniteSet, Part, some
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter

__all__ = ["Used", "as_answers", "filter_of", "finite", "level_text"]

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
class Used:
    """What an estimate was made from, and what it takes for granted."""

    subjects: int
    """How many subjects gave the responses that were used."""
    responses: int
    refused: int | None
    """How many subjects were refused the query, or any of the queries; None if not known."""
    assumes: str
    doubts: tuple[str, ...]
    """Why that does not hold, as far as is known."""

    @classmethod
    def of(
        cls, answers: Answers, subjects: int, responses: int, query: str | None, *, likeliest: bool
    ) -> Used:
        return cls(
            subjects,
            responses,
            answers.refused_subjects(query),
            _ALL if likeliest and answers.complete else _WHATEVER,
            _doubts(answers, query, likeliest=likeliest),
        )

    @classmethod
    def of_views(cls, answers: Answers, views: Counter[View]) -> Used:
        """The same where some responses are hidden, and all attempts are known."""
        refused = sum(
            subjects
            for view, subjects in views.items()
            if any(attempt.outcome == REFUSED for attempt in view)
        )
        return cls(views.total(), len(answers.codes), refused, _HIDDEN, ())

    def tree(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self)

    def amount(self) -> str:
        """How much it was made from, for people."""
        responses = format_count(self.responses, "response")
        return f"{responses} of {format_count(self.subjects, 'subject')}"

    def facts(self) -> dict[str, str]:
        """The same for people."""
        refused = None if self.refused is None else format_count(self.refused, "subject")
        return {
            "used": self.amount(),
            **({} if refused is None else {"refused": refused}),
            "assumes": self.assumes,
            **({"but": "; ".join(self.doubts)} if self.doubts else {}),
        }


def as_answers(
    given: Any, domain: Any, query: str | None = None, *, likeliest: bool = False
) -> Answers:
    """Answers as they are, or made from pairs, each from a different subject.

    It warns of whatever makes an estimate from them, or from those to one ``query``, wrong;
    ``likeliest`` is one that a filter does not make wrong. A warning points
    to the caller's caller, which is the user's code.
    """
    if isinstance(given, Answers):
        if domain is not None and domain != given.domain:
            raise InvalidInput("is not that of the answers, which have one", "domain")
        for doubt in _doubts(given, query, likeliest=likeliest):
            warnings.warn(doubt, UserWarning, stacklevel=3)
        return given
    return Answers.of_pairs(domain, given)


def filter_of(answers: Any) -> Filter:
    """The filter that answers name, which says what hidden responses may have been."""
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


def _doubts(answers: Answers, query: str | None, *, likeliest: bool) -> tuple[str, ...]:
    filtered = not likeliest and answers.by_responses
    if (answers.complete and not filtered) or answers.evenly(query):
        return ()
    doubts = [] if answers.complete else [_PART]
    return (*doubts, _FILTERED) if filtered else tuple(doubts)


def finite(answers: Answers) -> FiniteSet:
    """The domain of answers, where it has to be finite."""
    domain = answers.domain
    match domain:
        case FiniteSet():
            return domain
        case Attributes():
            names = some(domain.names)
            message = f"of which attributes? Take answers.about(…) some of {names}"
            raise InvalidInput(message, "domain")
        case Box():
            message = "must be a finite set: the values of a box cannot be listed"
            raise InvalidInput(message, "domain")
        case _:
            assert_never(domain)


def level_text(confidence: float) -> str:
    """A confidence for people: ``95 %``."""
    return f"{100 * confidence:.6g} %"
