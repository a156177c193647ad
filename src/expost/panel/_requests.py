"""Names of subjects and queries, and the requests that calls make with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.answers import (
    Answers,
    Subject,
    column_values,
    encode_column,
    encode_parsed_column,
    no_such_query,
    response_position,
)
from expost.errors import InvalidInput, at, expect
from expost.files.reading import text
from expost.panel._kernel import Kernel
from expost.panel._log import Log
from expost.panel._selection import groups
from expost.queries import Query

__all__ = ["Asking", "Naming", "check_name", "column_values", "subjects_of"]


_CONTENT_ID = re.compile("[0-9a-f]{64}")


def check_name(name: Any, query: Query) -> None:
    """Refuse a name that queries without a name could need as their content id."""
    expect(name, str, "known by texts")
    with at(name):
        expect(query, Query, "a query")
        if name == "":
            raise InvalidInput("a query's name must not be empty")
        if _CONTENT_ID.fullmatch(name) and name != query.content_id:
            raise InvalidInput("has the form of a content id; choose another name")


class Naming:
    """Which subject and which query is meant."""

    def __init__(self, subjects: Any, queries: Mapping[str, Query], kernel: Kernel) -> None:
        self._kernel = kernel
        self.subjects = subjects_of(subjects)
        with at("subjects"):
            text("".join(name for name in self.subjects if isinstance(name, str)))
        self._places = {subject: place for place, subject in enumerate(self.subjects)}
        if len(self._places) < len(self.subjects):
            raise InvalidInput("somebody is there twice", "subjects")
        self.queries: dict[str, Query] = {}
        self._ids: dict[int, str] = {}
        with at("queries"):
            expect(queries, Mapping, "queries by their ids")
            for key, query in queries.items():
                check_name(key, query)
                with at(key):
                    self._name(key, query)

    def _name(self, key: str, query: Query) -> int:
        number = self._kernel.number(query)
        first = self._ids.setdefault(number, key)
        if first != key:
            raise InvalidInput(f"is a second name: this query is called {first!r}")
        self.queries[key] = query
        return number

    def ids(self, asking: Asking) -> tuple[str | None, ...]:
        """The id of the query that is asked, for each row; None if none is."""
        if isinstance(asking.numbers, int):
            return (self._ids[asking.numbers],) * len(asking)
        return tuple(map(self._ids.get, asking.as_given(asking.numbers).tolist()))

    def id_of(self, query: Query) -> str:
        """The id of a query, which is its content id if it has no other."""
        return self._ids[self._of(query)]

    def place(self, subject: Any) -> int:
        """Where a subject is."""
        try:
            return self._places[subject]
        except (KeyError, TypeError):
            raise InvalidInput("nobody in the panel is called so", "subject") from None

    def asking(self, query: Any, subjects: Any, *, repeated: bool = False) -> Asking:
        """Who is asked what; ``repeated`` if somebody may be there more than once."""
        names = self.subjects if subjects is None else subjects_of(subjects)
        numbers = self._numbers(query, len(names))
        if subjects is None:
            return Asking(names, None, None, numbers)
        places = self.places(names)
        order = None
        if (np.diff(places) <= 0).any():
            order = np.argsort(places, kind="stable")
            places = places[order]
            if not repeated and (np.diff(places) == 0).any():
                raise InvalidInput("somebody is there twice", "subjects")
        if order is not None and not isinstance(numbers, int):
            numbers = numbers[order]
        return Asking(names, places, order, numbers)

    def places(self, subjects: Any) -> Indices:
        """Where some subjects are, in their order."""
        names = subjects_of(subjects)
        found = [self._places.get(name, -1) for name in names]
        if -1 in found:
            raise InvalidInput(
                "nobody in the panel is called so", f"subjects: row {found.index(-1) + 1}"
            )
        return np.array(found, dtype=np.intp)

    def _of(self, query: Query) -> int:
        number = self._kernel.number(query)
        return number if number in self._ids else self._name(query.content_id, query)

    def _numbers(self, query: Any, count: int) -> int | NDArray[np.intp]:
        """The number of a query, or of one for each row; -1 where there is none."""
        if isinstance(query, Query):
            return self._of(query)
        if isinstance(query, str):
            with at("query"):
                return self._number(query)
        with at("query"):
            try:
                column = column_values(query)
            except InvalidInput:
                raise InvalidInput("must be a query, the id of one, or a column of ids") from None
            if len(column) != count:
                raise InvalidInput(f"{len(column):,} ids for {count:,} subjects")
        each, numbers = encode_parsed_column(column, self._number, "query")
        return np.array(numbers, dtype=np.intp)[each]

    def _number(self, key: Any) -> int:
        if key is None:
            return -1
        name = str(key) if isinstance(key, (str, int)) else ""
        if name not in self.queries:
            raise no_such_query(name, self.queries)
        return self._kernel.number(self.queries[name])

    def positions(self, asking: Asking, responses: Any) -> NDArray[Any]:
        """The positions of responses, which are in the order of rows; the result is in that too."""
        column = column_values(responses)
        if len(column) != len(asking):
            message = f"{len(column):,} responses for {len(asking):,} subjects"
            raise InvalidInput(message, "responses")
        nothing = np.flatnonzero(np.atleast_1d(asking.numbers) < 0)
        if len(nothing):
            row = int(asking.rows(nothing).min())
            raise InvalidInput("nothing was asked here", f"query: row {row + 1}")
        found = np.empty(len(asking), dtype=object)
        for number, entries in asking.groups(np.arange(len(asking))):
            rows, question = asking.rows(entries), self._kernel.questions[number]
            codes, known = encode_column([column[row] for row in rows.tolist()], "response")
            likelihood = question.query.on(self._kernel.domain)
            positions = []
            for code, response in enumerate(known):
                row = int(rows[np.argmax(codes == code)])
                with at(f"row {row + 1}: response"):
                    positions.append(response_position(likelihood, response, self._ids[number]))
            found[entries] = np.array(positions, dtype=object)[codes]
        return found

    def answers(self, log: Log, refusals: Iterable[tuple[int, Indices]]) -> Answers:
        """What everybody answered, and who was refused what."""
        rounds = [(each.question, *each.everybody) for each in log.rounds]
        asked = list(dict.fromkeys(question for question, _, _ in rounds))
        first, pairs = {}, list[tuple[str, int]]()
        for question in sorted(asked, key=lambda question: question.number):
            # Answers are sorted by the position of the response, codes by when it first occurred.
            order = np.argsort(np.array(question.positions, dtype=object))
            first[question] = len(pairs) + np.argsort(order)
            key = self._ids[question.number]
            pairs += [(key, question.positions[place]) for place in order.tolist()]
        places = np.concatenate([np.zeros(0, dtype=np.intp), *(each for _, each, _ in rounds)])
        codes = [first[question][own] for question, _, own in rounds]
        order = np.argsort(places, kind="stable")
        whose, starts = np.unique(places[order], return_index=True)
        whom: dict[int, list[Indices]] = {}
        for number, own in refusals:
            whom.setdefault(number, []).append(own)
        refused = {
            (self.subjects[place], self._ids[number])
            for number, often in whom.items()
            for place in np.unique(np.concatenate(often)).tolist()
        }
        return Answers.of_codes(
            self._kernel.domain,
            self.queries,
            tuple(self.subjects[place] for place in whose.tolist()),
            pairs,
            np.concatenate([np.zeros(0, dtype=np.intp), *codes])[order],
            np.append(starts, len(order)),
            filter=self._kernel.filter,
            refused=refused,
        )


def subjects_of(given: Any) -> tuple[Subject, ...]:
    """The names of subjects, which are texts or integers."""
    with at("subjects"):
        names: Sequence[Any] = given if isinstance(given, range) else column_values(given)
        kinds = set(map(type, names))
        if not kinds <= {str, int} or "" in names:
            raise InvalidInput("must be texts or integers, and none of them empty")
        return tuple(names)


T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Asking:
    """Entries with a subject and a question each, in the order of the subjects' places."""

    names: tuple[Subject, ...]
    """The subjects as the caller gives them."""
    places: Indices | None
    """Where they are, in ascending order; None if they are all."""
    order: Indices | None
    """For each entry its row as the caller gives it; None if that is the same order."""
    numbers: int | NDArray[np.intp]
    """The number of the question for all of them, or for each; -1 for who is asked nothing."""

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, entries: Indices) -> Indices:
        """The rows of some entries."""
        return entries if self.order is None else self.order[entries]

    def at(self, entries: Indices) -> Indices:
        """The places of some entries."""
        return entries if self.places is None else self.places[entries]

    def as_given(self, column: NDArray[T]) -> NDArray[T]:
        """A column with an entry each, in the order of the rows."""
        if self.order is None:
            return column
        result = np.empty_like(column)
        result[self.order] = column
        return result

    @property
    def distinct(self) -> list[int]:
        """The numbers of the questions that are asked."""
        if isinstance(self.numbers, int):
            return [self.numbers]
        asked: list[int] = np.unique(self.numbers[self.numbers >= 0]).tolist()
        return asked

    def groups(self, entries: Indices) -> Iterator[tuple[int, Indices]]:
        """Some entries by the question that they are asked."""
        if isinstance(self.numbers, int):
            if len(entries):
                yield self.numbers, entries
            return
        for number, own in groups(self.numbers[entries]):
            if number >= 0:
                yield number, entries[own]

    def waves(self) -> Iterator[tuple[Indices, Asking]]:
        """Entries such that no subject is there twice, one such collection after the other."""
        if self.places is None or (np.diff(self.places) > 0).all():
            yield np.arange(len(self)), self
            return
        first = np.searchsorted(self.places, self.places)
        turn = np.arange(len(self)) - first
        for each in range(int(turn.max()) + 1):
            entries = np.flatnonzero(turn == each)
            yield entries, self._some(entries)

    def _some(self, entries: Indices) -> Asking:
        numbers: Any = self.numbers
        if not isinstance(numbers, int):
            numbers = numbers[entries]
        names = tuple(self.names[row] for row in self.rows(entries).tolist())
        return replace(self, names=names, places=self.at(entries), order=None, numbers=numbers)
