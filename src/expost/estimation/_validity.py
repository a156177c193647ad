"""The assumptions of an estimate, and reasons to doubt them.

Means and frequencies are unbiased only if responses did not decide who was asked. The likelihood of
a distribution stays valid under a filter, if all responses that the filter saw are here.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, assert_never

import numpy as np

from expost._format import format_count
from expost._types import Indices
from expost.answers import DECLINED, REFUSED, Answers, PartialView
from expost.domains import Attributes, Box, FiniteSet, Part, join_names
from expost.errors import InvalidInput, expect
from expost.estimation._support import read_estimand
from expost.filters import Filter

__all__ = [
    "ChosenAttributes",
    "Provenance",
    "asked_unequally",
    "exchange_counts",
    "finite_domain",
    "lacks_deciding_answers",
    "read_answers",
    "required_filter",
    "select_for_likelihood",
]


_SAMPLE = "the subjects are a random sample"
_WHATEVER = f"{_SAMPLE}, and who was asked what did not depend on responses"
_ALL = (
    f"{_SAMPLE}, these are all responses that a filter looked at, "
    "and no value changed between them unless it is declared as changing"
)
_DECLINES = ", and whether subjects declined did not depend on their values"
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

    #: How many subjects gave the responses.
    subjects: int
    responses: int
    #: How many subjects left the query, or any of the queries, unanswered, by outcome.
    #:
    #: None if that is not known.
    unanswered: Mapping[str, int] | None
    assumes: str
    #: Reasons why the assumptions may not hold.
    doubts: tuple[str, ...]

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
        unanswered = answers.count_unanswered(query)
        assumes = _ALL if by_likelihood and answers.complete else _WHATEVER
        return cls(
            subjects,
            responses,
            unanswered,
            assumes + (_DECLINES if unanswered and unanswered.get(DECLINED) else ""),
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
        return cls(views.total(), len(answers.codes), {REFUSED: refused}, _HIDDEN, ())

    def tree(self) -> dict[str, Any]:
        """Return the fields as JSON."""
        return asdict(self)

    def amount(self) -> str:
        """Count responses and subjects, in words."""
        responses = format_count(self.responses, "response")
        return f"{responses} of {format_count(self.subjects, 'subject')}"

    def facts(self) -> dict[str, str]:
        """Return labeled texts for people."""
        return {
            "used": self.amount(),
            **{
                outcome: format_count(subjects, "subject")
                for outcome, subjects in (self.unanswered or {}).items()
                if subjects or outcome == REFUSED
            },
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
            raise InvalidInput("differs from that of the answers; leave it out", "domain")
        for doubt in _doubts(answers, query, by_likelihood=by_likelihood):
            warnings.warn(doubt, UserWarning, stacklevel=3)
        return answers
    return Answers.of_pairs(domain, answers)


def required_filter(answers: Any) -> Filter:
    """Return the filter that answers name, which decides what hidden responses were possible."""
    expect(answers, Answers, "Answers, if there are attempts", "answers")
    assert isinstance(answers, Answers)
    if isinstance(answers.domain, Part):
        raise InvalidInput(
            "got a part of the answers, but a filter decides by the whole record; pass about=… "
            "instead of answers.about(…)",
            "attempts",
        )
    if answers.filter is None:
        raise InvalidInput("the answers must name it: Answers(…, filter=…)", "filter")
    return answers.filter


def lacks_deciding_answers(answers: Answers) -> bool:
    """Return whether missing answers about other attributes may have decided who was asked.

    Then even estimates by likelihood may be biased.
    """
    return not answers.complete and not answers.evenly()


def asked_unequally(answers: Answers, query: str | None = None) -> bool:
    """Return whether subjects were asked unequally, so that unbiased estimators may be biased.

    Under a filter that looks at responses, subjects with equally many answers may still have been
    asked different queries.
    """
    counts = exchange_counts(answers, query)
    if (counts != counts[0]).any():
        return True
    return query is None and answers.by_responses and not answers.evenly()


def exchange_counts(answers: Answers, query: str | None = None) -> Indices:
    """Count the responses of each subject, to one query or to all."""
    if query is None:
        return answers.exchanges
    is_query = np.array([key == query for key, _ in answers.responses])
    return np.add.reduceat(is_query[answers.codes].astype(np.intp), answers.starts[:-1])


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
            message = f"the domain has attributes; call answers.about(…) with some of {names}"
            raise InvalidInput(message, "domain")
        case Box():
            message = "must be a finite set; the values of a box cannot be listed"
            raise InvalidInput(message, "domain")
        case _:
            assert_never(domain)


#: The attributes that an estimate is about, and the step if one of them changes.
ChosenAttributes = tuple[tuple[str, ...], int | None]


def select_for_likelihood(
    answers: Answers, chosen: ChosenAttributes | None, *, planned: bool
) -> tuple[Answers, ChosenAttributes | None]:
    """Select the answers for an estimate by likelihood, and the attributes that it is about.

    These are all answers if those about other attributes may have decided who was asked, and if
    there are not too many combinations. Otherwise they are the answers about the chosen ones.
    """
    if chosen is None:
        return answers, None
    names, step = chosen
    try:
        part = answers.about(*names, at=step, planned=planned)
    except InvalidInput as error:
        if planned or not _can_estimate_together(answers, chosen):
            raise error from None
        return answers, chosen
    if planned or not lacks_deciding_answers(part) or not _can_estimate_together(answers, chosen):
        return part, None
    return answers, chosen


def _can_estimate_together(answers: Answers, chosen: ChosenAttributes) -> bool:
    try:
        read_estimand(answers, *chosen)
    except InvalidInput:  # perhaps there are too many combinations
        return False
    return True
