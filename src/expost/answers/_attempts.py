"""All attempts to ask, in their order: what is known of answers some of which are hidden."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

from expost.answers._answers import Answers, Subject, read_key, read_subject
from expost.answers._columns import encode_parsed_column, read_columns
from expost.answers._outcomes import ANSWERED, HIDDEN, OUTCOME, REFUSED, read_outcome
from expost.errors import InvalidInput, at

__all__ = ["Attempt", "PartialView", "views_of"]

_COLUMNS = ("subject", "query", OUTCOME)


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to ask a subject, and what an analyst knows of its outcome."""

    outcome: str
    #: Its id.
    query: str
    #: The position of the response, if it is known.
    position: int | None


#: The attempts that an analyst made to ask one subject, in order.
PartialView = tuple[Attempt, ...]


def views_of(answers: Answers, table: Any) -> Counter[PartialView]:
    """Return how many subjects each view is of.

    ``table`` has a row per attempt, in their order, with the columns ``subject``, ``query`` and
    ``outcome``: answered, hidden or refused. The answered ones of a subject are its responses, in
    the order of the table of answers.
    """
    with at("attempts", ": "):
        columns = read_columns(table, _COLUMNS)
        subject_of, subjects = encode_parsed_column(columns["subject"], read_subject, "subject")
        read_known_key = partial(read_key, likelihoods=answers.queries)
        key_of, keys = encode_parsed_column(columns["query"], read_known_key, "query")
        read_known_outcome = partial(read_outcome, expected=(ANSWERED, HIDDEN, REFUSED))
        outcome_of, outcomes = encode_parsed_column(columns[OUTCOME], read_known_outcome, OUTCOME)
        attempts_by_subject = {subject: list[tuple[str, str]]() for subject in subjects}
        rows = zip(subject_of.tolist(), key_of.tolist(), outcome_of.tolist(), strict=True)
        for subject, key, outcome in rows:
            attempts_by_subject[subjects[subject]].append((outcomes[outcome], keys[key]))
        for subject in answers.subjects:
            if subject not in attempts_by_subject:
                raise InvalidInput(f"subject {subject!r} answered but has no row")
        responses_by_subject = _responses_by_subject(answers)
        return Counter(
            _partial_view(subject, attempts, responses_by_subject.get(subject, []))
            for subject, attempts in attempts_by_subject.items()
        )


def _responses_by_subject(answers: Answers) -> dict[Subject, list[tuple[str, int]]]:
    bounds = zip(answers.subjects, answers.starts[:-1], answers.starts[1:], strict=True)
    codes = answers.codes.tolist()
    return {name: [answers.responses[code] for code in codes[a:b]] for name, a, b in bounds}


def _partial_view(
    subject: Subject, attempts: list[tuple[str, str]], answered: list[tuple[str, int]]
) -> tuple[Attempt, ...]:
    if [key for outcome, key in attempts if outcome == ANSWERED] != [key for key, _ in answered]:
        raise InvalidInput(
            f"got answered queries of subject {subject!r} that differ from those of its "
            "responses; expected the same queries in the same order"
        )
    responses = iter(answered)
    return tuple(
        Attempt(outcome, key, next(responses)[1] if outcome == ANSWERED else None)
        for outcome, key in attempts
    )
