"""What a saturating query asks, and what each value answers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from expost._types import Indices
from expost.domains import Attributes, Box, Domain, FiniteSet, Variable
from expost.errors import InvalidInput, at
from expost.files.canonical import canonical, value_tree
from expost.files.reading import text
from expost.knowledge import Statement, named_rows, parse_predicate

__all__ = ["Question", "read_question", "read_seed"]

_STEP = re.compile(r"(.*\S)\s+at\s+(-?[0-9]{1,9})")


@dataclass(frozen=True, eq=False)
class Question:
    """What it is about, and the answer of each value of that, numbered from 0."""

    variables: tuple[Variable, ...]
    """Of records; otherwise empty."""
    answers: Indices

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for what is the same, however it is written."""
        return self.variables, hashlib.sha256(self.answers.tobytes()).digest()


def read_question(domain: Domain, given: Any, seed: str | None) -> Question:
    """A question as a person writes it."""
    with at("question", " " if isinstance(given, str) else "."):
        match domain:
            case FiniteSet():
                question = Question((), _on_set(domain, given, seed))
            case Attributes():
                question = _on_attributes(domain, given, seed)
            case Box():
                raise InvalidInput(
                    "on a box a saturating query gains nothing; it needs a finite set"
                )
            case _:
                assert_never(domain)
        if question.answers.min() == question.answers.max():
            raise InvalidInput("every value has the same answer, so there is nothing to ask")
    return question


def _on_set(domain: FiniteSet, given: Any, seed: str | None) -> Indices:
    if isinstance(given, str):
        names = domain.called("value")
        if given in names and len(names) > 1:
            column = names.index(given)
            rows = [row for row in domain.values if isinstance(row, tuple)]
            return _numbered([row[column] for row in rows], seed)
        if given in ("value", *names):
            return _numbered(domain.values, seed)
        holds = parse_predicate(given, domain)
        found = (holds(row) for row in named_rows(domain, domain.values))
        return np.fromiter(found, dtype=np.intp, count=len(domain))
    return _members(domain, given)


def _members(domain: FiniteSet, given: Any) -> Indices:
    """Yes for these values, and no for the others."""
    try:
        members = list(given)
    except TypeError:
        message = "must be a statement, a name, or a collection of values"
        raise InvalidInput(message) from None
    answers = np.zeros(len(domain), dtype=np.intp)
    for index, value in enumerate(members):
        place = domain.locate(value)
        if place is None:
            raise InvalidInput("is not a value of the domain", f"[{index}]")
        answers[place] = 1
    return answers


def _numbered(values: Sequence[Any], seed: str | None) -> Indices:
    """Each value of its own, in a public order, which a seed draws if there are more than two."""
    different = dict.fromkeys(values)
    ordered = list(different)
    if len(ordered) > 2:
        if seed is None:
            raise InvalidInput(
                "has more than two answers: give a seed for their public order, another one for "
                'each subject, such as seed="4f1c"'
            )
        key = read_seed(seed)
        texts = {value: canonical(value_tree(value)) for value in ordered}
        ordered.sort(key=lambda value: hashlib.sha256(key + texts[value]).digest())
    numbers = {value: number for number, value in enumerate(ordered)}
    return np.array([numbers[value] for value in values], dtype=np.intp)


def read_seed(seed: str) -> bytes:
    """A public seed, as a person writes it."""
    with at("seed"):
        if not re.fullmatch("([0-9a-fA-F]{2}){1,64}", text(seed)):
            raise InvalidInput("must be 1 to 64 bytes in hexadecimal digits, two for each")
        return bytes.fromhex(seed)


def _on_attributes(domain: Attributes, given: Any, seed: str | None) -> Question:
    if not isinstance(given, str):
        raise InvalidInput("about attributes must be a text, such as 'age >= 60', or a name")
    named = _attribute(domain, given)
    if named is not None:
        return Question((named,), _numbered(domain[named[0]].values.values, seed))
    statement = Statement(domain, given)
    answers = np.array([p == 1 for p in statement.probabilities], dtype=np.intp)
    return Question(statement.variables, answers)


def _attribute(domain: Attributes, given: str) -> Variable | None:
    """The attribute that a text names, if it is nothing but that, and a step where it changes."""
    found = _STEP.fullmatch(given)
    name, step = (found[1], int(found[2])) if found else (given, None)
    if name not in domain.names:
        return None
    return domain.variables([name], step)[0]
