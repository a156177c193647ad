"""Queries that may be asked and responses that were given, by the numbers that rows have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import no_such_query
from expost.errors import InvalidInput
from expost.files.canonical import json_text, readable, value_tree
from expost.files.reading import parse, scalar
from expost.ledger.backend import DECLINED, Backend
from expost.ledger.digests import link
from expost.ledger.errors import Damaged
from expost.ledger.records import Outcome, QueryWord, ResponseWord
from expost.panel.kernel import Kernel
from expost.queries import Likelihood, Query, query_from_json

__all__ = ["Words", "response_from_json"]

Ints = NDArray[np.int64]


class Words:
    """Numbers of a backend, and what they stand for.

    Words are never changed, so what is known stays right; others may have added more. A word that
    is new here is tentative until a change with it was recorded.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self.queries: dict[str, Query] = {}
        """Queries by their names."""
        self.names: list[str] = [""]
        """Names of queries by number."""
        self.content_ids: dict[int, str] = {}
        self._questions: list[int] = [-1]
        self._by_content: dict[str, int] = {}
        self._responses: dict[tuple[int, int], int] = {}
        self._words: list[ResponseWord] = [ResponseWord(0, 0, "")]
        self._links: list[bytes] = [b""]
        self._positions: list[int] = [-1]
        self._question_of = np.full(64, -1, dtype=np.int64)
        self._position_of = np.full(64, -1, dtype=np.int64)
        self._wide = False
        """Whether a position does not fit into a word."""
        self._tentative: tuple[list[QueryWord], list[ResponseWord]] = ([], [])
        self._whole = True
        """Whether nothing was added in part, as by an interrupt."""

    def read(self, backend: Backend) -> None:
        """Learn what others have added."""
        # In this order: the query of a response is there when the response is.
        responses = backend.responses(len(self._positions) - 1)
        for query in backend.queries(len(self._questions) - 1):
            self._learn_query(query)
        for response in responses:
            self._learn_response(response)

    def _learn_query(self, word: QueryWord) -> None:
        try:
            query = query_from_json(parse(word.document))
            known = query.content_id == word.content_id and word.number == len(self._questions)
        except InvalidInput:
            known = False
        if not known:
            raise Damaged(f"query {word.number} is not what was recorded")
        self._add_query(word, query)

    def _add_query(self, word: QueryWord, query: Query) -> None:
        self._whole = False
        self._questions.append(self._kernel.number(query))
        self.queries[word.name] = query
        self.names.append(word.name)
        self.content_ids[word.number] = word.content_id
        self._by_content[word.content_id] = word.number
        self._whole = True

    def _learn_response(self, word: ResponseWord) -> None:
        query = self.query(word.query) if word.query < len(self._questions) else None
        position = None
        if query is not None and word.number == len(self._positions):
            likelihood = query.on(self._kernel.domain)
            position = likelihood.position(response_from_json(word.response))
        if query is None or position is None:
            raise Damaged(f"response {word.number} is not what was recorded")
        self._add_response(word, query, position)

    def _add_response(self, word: ResponseWord, query: Query, position: int) -> None:
        self._whole = False
        if word.number >= len(self._question_of):
            more = np.full(len(self._question_of), -1, dtype=np.int64)
            self._question_of = np.concatenate([self._question_of, more])
            self._position_of = np.concatenate([self._position_of, more])
        self._question_of[word.number] = self._questions[word.query]
        if position < 1 << 63:
            self._position_of[word.number] = position
        else:
            self._wide = True
        self._positions.append(position)
        self._responses[word.query, position] = word.number
        self._words.append(word)
        response = self._kernel.questions[self._questions[word.query]].responses[position]
        self._links.append(link(query.content_id, value_tree(response)))
        self._whole = True

    def query(self, number: int) -> Query:
        """A query by its number."""
        return self._kernel.questions[self._questions[number]].query

    def question(self, number: int) -> int:
        """The number that the kernel has for a query."""
        return self._questions[number]

    def questions(self, numbers: Ints) -> Ints:
        """The same of many."""
        found = map(self._questions.__getitem__, numbers.tolist())
        return np.fromiter(found, np.int64, len(numbers))

    def known(self, query: Query) -> int:
        """The number of a query; 0 if it has none so far."""
        return self._by_content.get(query.content_id, 0)

    def name_of(self, query: Query) -> str:
        """The name of a query that has a number."""
        return self.names[self.known(query)]

    def by_content(self, content_id: str) -> int:
        """The number of a query by its content id; 0 if there is none."""
        return self._by_content.get(content_id, 0)

    def likelihood(self, number: int) -> Likelihood[Any]:
        """What a query says of a response."""
        return self.query(number).on(self._kernel.domain)

    def named(self, name: Any) -> Query:
        """A query by its name."""
        key = str(name) if isinstance(name, (str, int)) else ""
        if key not in self.queries:
            raise no_such_query(key, self.queries)
        return self.queries[key]

    def propose_query(self, query: Query, name: str = "") -> int:
        """The number of a query, which it gets now if it has none."""
        number = self.known(query)
        if number:
            return number
        self._kernel.number(query)  # which refuses what cannot be asked here
        number = len(self._questions)
        document = json_text(readable({"kind": query.kind, **query.tree()}))
        word = QueryWord(number, query.content_id, name or query.content_id, document)
        self._tentative[0].append(word)
        self._add_query(word, query)
        return number

    def propose_response(self, query: int, position: int) -> int:
        """The number of a response, which it gets now if it has none."""
        number = self._responses.get((query, position))
        if number is not None:
            return number
        number = len(self._positions)
        question = self._kernel.questions[self._questions[query]]
        written = json_text(readable(value_tree(question.responses[position])))
        word = ResponseWord(number, query, written)
        self._tentative[1].append(word)
        self._add_response(word, question.query, position)
        return number

    def tentative(self) -> tuple[list[QueryWord], list[ResponseWord]]:
        """Words that are not recorded yet, for a change that uses them."""
        queries, responses = self._tentative
        return [*queries], [*responses]

    @property
    def unsettled(self) -> bool:
        """Whether some are not recorded, or added in part: then all have to be read again."""
        return not self._whole or any(self._tentative)

    def settle(self) -> None:
        """They are recorded now."""
        self._tentative = ([], [])

    def forget(self) -> Words:
        """What is recorded, for sure: nothing is known before it is read."""
        return Words(self._kernel)

    @property
    def last_response(self) -> int:
        """The largest number of a response that is known."""
        return len(self._positions) - 1

    @property
    def last_query(self) -> int:
        """The largest number of a query that is known."""
        return len(self._questions) - 1

    def response(self, number: int) -> ResponseWord:
        """A response by its number."""
        return self._words[number]

    def explains(self, outcome: Outcome) -> bool:
        """Whether it is one that a request can have: a response is to its query, in an exchange."""
        query, sequence, response, _ = outcome
        if response <= 0:
            reserved = sequence > 0 if response else sequence >= 0
            return 1 <= query <= self.last_query and response >= DECLINED and reserved
        known = sequence > 0 and response <= self.last_response
        return known and self._words[response].query == query

    def link(self, response: int) -> bytes:
        """What all exchanges with a response have in common in their heads."""
        return self._links[response]

    def links(self, responses: Sequence[int]) -> list[bytes]:
        """The same of many responses."""
        return list(map(self._links.__getitem__, responses))

    def position(self, response: int) -> int:
        """Where a response is among those of its query."""
        return self._positions[response]

    def question_of(self, responses: Ints) -> Ints:
        """The kernel's numbers of the questions of some responses."""
        return self._question_of.take(responses)

    def query_of(self, responses: Ints) -> Ints:
        """The queries of some responses."""
        known, place = np.unique(responses, return_inverse=True)
        return np.array([self._words[number].query for number in known.tolist()])[place]

    def positions_of(self, responses: Ints) -> NDArray[Any]:
        """The positions of some responses."""
        if not self._wide:
            return self._position_of.take(responses)
        found = [self._positions[number] for number in responses.tolist()]
        wide = any(position >= 1 << 63 for position in found)
        return np.array(found, dtype=object if wide else np.int64)


def response_from_json(text: str) -> Any:
    """A response as it is kept."""
    value = parse(text)
    return [scalar(entry) for entry in value] if isinstance(value, list) else scalar(value)
