"""Questions of saturating queries, as a partition of the values by their answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._format import format_list, shorten
from expost._types import Indices
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at
from expost.files.canonical import canonical_bytes, value_tree
from expost.files.reading import text
from expost.knowledge import Statement, locate_all, named_rows, parse_predicate

__all__ = ["AnswerPartition", "read_question", "read_seed"]


_STEP = re.compile(r"(.*\S)\s+at\s+(-?[0-9]{1,9})")


@dataclass(frozen=True, eq=False)
class AnswerPartition:
    """The answers of values to a question, numbered from 0."""

    #: The variables of records that the question is about; empty on a set.
    variables: tuple[Variable, ...]
    answers: Indices
    #: The question in words.
    text: str

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equal questions, however they are written."""
        return self.variables, hashlib.sha256(self.answers.tobytes()).digest()


def read_question(domain: Domain, question: Any, seed: str | None) -> AnswerPartition:
    """Read a question: a statement, a name, or a collection of values."""
    with at("question", " " if isinstance(question, str) else "."):
        match domain:
            case FiniteSet():
                answers = _on_set(domain, question, seed)
                partition = AnswerPartition((), answers, _describe(domain, question, answers))
            case Attributes():
                partition = _on_attributes(domain, question, seed)
            case Box():
                raise InvalidInput(
                    "on a box a saturating query gains nothing; it needs a finite set"
                )
            case _:
                assert_never(domain)
        if partition.answers.min() == partition.answers.max():
            raise InvalidInput("every value has the same answer, so there is nothing to ask")
    return partition


def _describe(domain: FiniteSet, question: Any, answers: Indices) -> str:
    if isinstance(question, str):
        return question
    members = [domain.values[index] for index in np.flatnonzero(answers).tolist()]
    return f"one of {format_list(members, 'or')}"


def _on_set(domain: FiniteSet, question: Any, seed: str | None) -> Indices:
    if isinstance(question, str):
        names = domain.called("value")
        if question in names and len(names) > 1:
            column = names.index(question)
            rows = [row for row in domain.values if isinstance(row, tuple)]
            return _number_values([row[column] for row in rows], seed)
        if question in ("value", *names):
            return _number_values(domain.values, seed)
        holds = parse_predicate(question, domain)
        answers = (holds(row) for row in named_rows(domain, domain.values))
        return np.fromiter(answers, dtype=np.intp, count=len(domain))
    return _members(domain, question)


def _members(domain: FiniteSet, values: Any) -> Indices:
    """Answer yes for these values, and no for the others."""
    try:
        listed_values = list(values)
    except TypeError:
        raise InvalidInput("must be a statement, a name, or a collection of values") from None
    answers = np.zeros(len(domain), dtype=np.intp)
    answers[list(locate_all(domain, listed_values))] = 1
    return answers


def _number_values(values: Sequence[Any], seed: str | None) -> Indices:
    """Number distinct values in a public order, drawn by a seed if there are more than two."""
    ordered = list(dict.fromkeys(values))
    if len(ordered) > 2:
        if seed is None:
            raise InvalidInput(
                f"got {len(ordered)} possible answers without a seed; expected a seed for their "
                'public order, a different one for each subject, such as seed="4f1c"'
            )
        key = read_seed(seed)
        texts = {value: canonical_bytes(value_tree(value)) for value in ordered}
        ordered.sort(key=lambda value: hashlib.sha256(key + texts[value]).digest())
    value_ids = {value: index for index, value in enumerate(ordered)}
    return np.array([value_ids[value] for value in values], dtype=np.intp)


def read_seed(seed: str) -> bytes:
    """Read a public seed in hexadecimal digits."""
    with at("seed"):
        if not re.fullmatch("([0-9a-fA-F]{2}){1,64}", text(seed)):
            raise InvalidInput(
                "must be 1 to 64 bytes in hexadecimal digits, two for each, not "
                f"{shorten(repr(seed))}"
            )
        return bytes.fromhex(seed)


def _on_attributes(domain: Attributes, question: Any, seed: str | None) -> AnswerPartition:
    if not isinstance(question, str):
        raise InvalidInput("expected a string: a statement such as 'age >= 60', or an attribute")
    variable = _attribute(domain, question)
    if variable is not None:
        numbered = _number_values(domain[variable[0]].values.values, seed)
        return AnswerPartition((variable,), numbered, question)
    statement = Statement(domain, question)
    answers = np.array([p == 1 for p in statement.probabilities], dtype=np.intp)
    return AnswerPartition(statement.variables, answers, question)


def _attribute(domain: Attributes, question: str) -> Variable | None:
    """Return the attribute that a text names, with its step if it changes; None for statements."""
    match = _STEP.fullmatch(question)
    name, step = (match[1], int(match[2])) if match else (question, None)
    return domain.variables([name], step)[0] if name in domain.names else None
