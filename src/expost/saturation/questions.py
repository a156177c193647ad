"""What a saturating query asks: which of the values it sees, and what each of them answers."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.domains import Attributes, Box, Domain, FiniteSet, Part, Variable, some
from expost.domains.attributes import MOST_COMBINATIONS
from expost.errors import InvalidInput, at
from expost.files.canonical import canonical, value_tree
from expost.files.reading import text
from expost.knowledge import Statement
from expost.knowledge.grammar import predicate, rows_of
from expost.queries import Query
from expost.transcript import Summand

__all__ = ["Question", "read_question"]

Answers = NDArray[np.intp]
_STEP = re.compile(r"(.*\S)\s+at\s+(-?[0-9]{1,9})")


@dataclass(frozen=True)
class Question:
    """The values that it sees, and the answer of each of them, numbered from 0."""

    seen: FiniteSet
    answers: Answers
    step: int | None = None

    def asked(self, query: Query) -> Query:
        """A query on what it sees, as one on the domain."""
        if isinstance(self.seen, Part):
            return query.about(*self.seen.about, at=self.step)
        return query


def read_question(
    domain: Domain, given: Any, summands: Sequence[Summand], seed: str | None
) -> Question:
    """A question as a person writes it, on a domain of which some things are known."""
    with at("question", " " if isinstance(given, str) else "."):
        question: Question = domain.asked(_Reading(given, summands, seed))
        if int(question.answers.max()) == 0:
            raise InvalidInput("every value has the same answer, so there is nothing to ask")
    return question


@dataclass(frozen=True)
class _Reading:
    given: Any
    summands: Sequence[Summand]
    seed: str | None

    def on_set(self, domain: FiniteSet) -> Question:
        return Question(domain, _on_set(domain, self.given, self.seed))

    def on_attributes(self, domain: Attributes) -> Question:
        return _on_attributes(domain, self.given, self.summands, self.seed)

    def on_box(self, domain: Box) -> Question:
        raise InvalidInput("on a box a saturating query gains nothing; it needs a finite set")


def _on_set(domain: FiniteSet, given: Any, seed: str | None) -> Answers:
    if isinstance(given, str):
        names = domain.called("value")
        if given in names and len(names) > 1:
            column = names.index(given)
            rows = [row for row in domain.values if isinstance(row, tuple)]
            return _numbered([row[column] for row in rows], seed)
        if given in ("value", *names):
            return _numbered(domain.values, seed)
        holds = predicate(given, domain)
        found = (holds(row) for row in rows_of(domain, domain.values))
        return np.fromiter(found, dtype=np.intp, count=len(domain))
    return _members(domain, given)


def _members(domain: FiniteSet, given: Any) -> Answers:
    """Yes for these values, and no for the others."""
    if not isinstance(given, Iterable):
        raise InvalidInput("must be a statement, a name, or a collection of values")
    answers = np.zeros(len(domain), dtype=np.intp)
    for index, value in enumerate(given):
        place = domain.locate(value)
        if place is None:
            raise InvalidInput("is not a value of the domain", f"[{index}]")
        answers[place] = 1
    return answers


def _numbered(values: Sequence[Any], seed: str | None) -> Answers:
    """Each value of its own, in a public order, which a seed draws if there are more than two."""
    different = dict.fromkeys(values)
    ordered = list(different)
    if len(ordered) > 2:
        key = _read_seed(seed)
        texts = {value: canonical(value_tree(value)) for value in ordered}
        ordered.sort(key=lambda value: hashlib.sha256(key + texts[value]).digest())
    numbers = {value: number for number, value in enumerate(ordered)}
    return np.array([numbers[value] for value in values], dtype=np.intp)


def _read_seed(seed: str | None) -> bytes:
    if seed is None:
        raise InvalidInput(
            "has more than two answers: give a seed for their public order, another one for each "
            'subject, such as seed="4f1c"'
        )
    with at("seed"):
        if not re.fullmatch("([0-9a-fA-F]{2}){1,64}", text(seed)):
            raise InvalidInput("must be 1 to 64 bytes in hexadecimal digits, two for each")
        return bytes.fromhex(seed)


def _on_attributes(
    domain: Attributes, given: Any, summands: Sequence[Summand], seed: str | None
) -> Question:
    if not isinstance(given, str):
        raise InvalidInput("about attributes must be a text, such as 'age >= 60', or a name")
    named = _attribute(domain, given)
    if named is None:
        statement = Statement(domain, given)
        wanted = statement.variables
        answers = np.array([p == 1 for p in statement.probabilities], dtype=np.intp)
    else:
        wanted = (named,)
        answers = _numbered(domain[named[0]].values.values, seed)
    seen, step = _enumerated(domain, wanted, summands)
    own = _lifted(seen, [name for name, _ in wanted])
    return Question(seen, answers[own], step)


def _attribute(domain: Attributes, given: str) -> Variable | None:
    """The attribute that a text names, if it is nothing but that, and a step where it changes."""
    found = _STEP.fullmatch(given)
    name, step = (found[1], int(found[2])) if found else (given, None)
    if name not in domain.names:
        return None
    return domain.variables([name], step)[0]


def _enumerated(
    domain: Attributes, wanted: Iterable[Variable], summands: Sequence[Summand]
) -> tuple[Part, int | None]:
    """All combinations of what was asked about so far and is now, and at which step."""
    variables = dict.fromkeys(wanted)
    for summand in summands:
        variables |= dict.fromkeys(summand.query.on(domain).variables)
    steps = {step for _, step in variables if step is not None}
    if len(steps) > 1:
        raise InvalidInput(
            "the answers so far and the question are about several steps, and a query is about one"
        )
    names = {name for name, _ in variables}
    ordered = tuple(name for name in domain.names if name in names)
    size = math.prod(len(domain[name].values) for name in ordered)
    if size > MOST_COMBINATIONS:
        raise InvalidInput(
            f"{some(ordered)} have {size:,} combinations; a saturating query takes all that "
            f"was asked about into account, and at most {MOST_COMBINATIONS:,}"
        )
    return domain.part(ordered), next(iter(steps), None)


def _lifted(part: Part, names: Sequence[str]) -> Answers:
    """Where each combination is among those of some attributes."""
    axes = np.unravel_index(np.arange(len(part)), part.sizes)
    places = [part.about.index(name) for name in names]
    sizes = [part.sizes[place] for place in places]
    return np.ravel_multi_index([axes[place] for place in places], sizes).astype(np.intp)
