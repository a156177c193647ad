"""Many subjects under one policy, in memory: check, sample, record, release, for all at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.answers import Answers, Subject
from expost.cards import card
from expost.domains import Domain
from expost.errors import InvalidInput, expect
from expost.filters import Filter
from expost.panel._box_state import Search
from expost.panel._kernel import FilterVerdicts, Kernel
from expost.panel._requests import NameTable, QueryRequest
from expost.panel._results import Bounds, Decisions, Replies
from expost.panel._saturating import SaturatingQueryCache, SaturatingRequest
from expost.panel._selection import Selection
from expost.panel._values import Values, values_of
from expost.queries import Query
from expost.sampling import Source, SystemSource, check_source
from expost.session._secret import Secret, without_frames
from expost.transcript import Transcript

__all__ = ["Panel"]


class Panel:
    """Many subjects on one domain, each with a budget of its own under one filter.

    The verbs are those of a :class:`Session`: :meth:`decide` returns who would answer, :meth:`ask`
    draws and records the responses of those who do, and :meth:`record` records what devices drew
    and sent. All of them take one query for all subjects, or a column of query ids. Decisions and
    losses are those of a session for each subject, computed in arrays.

    A panel stores no values. :meth:`ask` takes them each time, and nothing but the draw of a
    response looks at them.

    Args:
        domain: The values that every subject may have.
        filter: The privacy filter of each subject.
        subjects: Their names: strings or integers.
        queries: Queries by their ids; others are identified by their content ids.
        source: The source of randomness, by default that of the operating system; a seeded one is
            for simulations.
        search: The effort of searches on a box, and the number of processes for them.

    >>> import expost as xp
    >>> panel = xp.Panel(
    ...     xp.FiniteSet(["no", "yes"]), filter=xp.BayesianFilter(epsilon=1), subjects=["a", "b"]
    ... )
    >>> query = xp.randomized_response(epsilon=1)
    >>> replies = panel.ask(query, ["no", "yes"])
    >>> len(replies.refused), panel.decide(query).accepted.tolist()
    (0, [False, False])
    """

    def __init__(
        self,
        domain: Domain,
        *,
        filter: Filter,
        subjects: Any,
        queries: Mapping[str, Query] | None = None,
        source: Source | None = None,
        search: Search | None = None,
    ) -> None:
        expect(domain, Domain, "a FiniteSet, Attributes or a Box", "domain")
        expect(filter, Filter, "a filter, such as BayesianFilter(epsilon=1)", "filter")
        check_source(source)
        expect(search, Search | None, "a Search, such as Search(processes=2)", "search")
        self._kernel = Kernel(domain, filter, search)
        self._names = NameTable(subjects, {} if queries is None else queries, self._kernel)
        self._state = self._kernel.start(len(self._names.subjects))
        self._saturating_queries = SaturatingQueryCache(self._kernel)
        self._suspended = np.zeros(len(self._names.subjects), dtype=np.bool_)
        self._refusals: list[tuple[int, Indices]] = []
        self._source = source or SystemSource()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._broken = False

    @property
    def domain(self) -> Domain:
        """The domain of all subjects."""
        return self._kernel.domain

    @property
    def filter(self) -> Filter:
        """The filter of all subjects."""
        return self._kernel.filter

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The names of all subjects. Arrays are in their order."""
        return self._names.subjects

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that are known, by their ids."""
        return self._names.queries

    @property
    def loss(self) -> Bounds:
        """The realized loss of every subject now, in nats."""
        return self._capped(*self._state.losses(Selection(len(self))))

    @property
    def peak(self) -> Bounds:
        """The largest realized loss of every subject at any point."""
        return self._capped(*self._state.peaks(Selection(len(self))))

    @property
    def spent(self) -> Bounds:
        """The sum of the epsilons of every subject, which is what basic composition says."""
        lower, upper = self._state.spent.around(Selection(len(self)), None)
        return Bounds(lower, self.filter.cap_spent(lower, upper, ~self._suspended))

    @property
    def remaining(self) -> NDArray[np.float64]:
        """Budget minus what counts against it, rounded down; 0 for suspended subjects."""
        return self._remaining(None)

    @property
    def exchanges(self) -> NDArray[np.int32]:
        """The number of responses of each subject."""
        return self._state.exchanges.copy()

    @property
    def suspended(self) -> NDArray[np.bool_]:
        """Which subjects answered a query that the filter refuses; they are no longer asked."""
        return self._suspended.copy()

    def decide(self, query: Any, subjects: Any = None) -> Decisions:
        """Decide who would answer, with the numbers, as a dry run. It changes nothing.

        ``query`` is a query, the id of one, or a column of ids with an entry for each subject.
        ``subjects`` are by default all of them.
        """
        with self._exclusively():
            request = self._names.request(query, subjects)
            verdicts, remaining = self._verdicts(request), self._remaining(request.subject_indices)
        return Decisions(
            request.names,
            request.in_caller_order(verdicts.accepted),
            request.in_caller_order(verdicts.undecided),
            Bounds(
                request.in_caller_order(verdicts.lower), request.in_caller_order(verdicts.upper)
            ),
            request.in_caller_order(remaining),
        )

    def ask(self, query: Any, values: Any, subjects: Any = None) -> Replies:
        """Ask a query and record the responses of all subjects whose filter accepts it.

        ``values`` has the value of every subject that is asked, in the same order: a column, for
        vectors or records also a frame. Where attributes change, it has a list for each subject
        with all values so far, from the first step on; values beyond the limits of the domain are
        frozen first.

        All responses are recorded before anything is returned. A refusal spends nothing.
        """
        secret = Secret(values)
        del values  # so that no traceback that prints local variables can show it
        with self._exclusively():
            request = self._names.request(query, subjects)
            values_by_query = self._read_values(request, secret)
            accepted = self._verdicts(request).accepted
            draws = self._draw(request, values_by_query, accepted)
            with self._recording():
                for query_index, entries, positions in draws:
                    self._kernel.fold(self._state, query_index, positions, request.at(entries))
                for query_index, entries in request.groups(np.flatnonzero(~accepted)):
                    self._refusals.append((query_index, request.at(entries)))
            return self._replies(request, accepted, draws)

    def record(self, query: Any, responses: Any, subjects: Any = None) -> NDArray[np.bool_]:
        """Take in responses that devices drew and sent themselves.

        Whatever arrived was seen, so all of it is kept and counts. Each is decided about on what
        came before, and what is returned says which of them the filter accepts, in the order of
        the responses. A subject who answered what it refuses is suspended: all that follows is
        refused, and the audit shows it. A subject may be named more than once, for one response
        after the other. If one of the responses is none of its query, nothing is recorded.
        """
        with self._exclusively():
            request = self._names.request(query, subjects, repeated=True)
            positions = self._names.positions(request, responses)
            self._check_deltas(request)
            accepted = np.empty(len(request), dtype=np.bool_)
            # All of it has been seen, so an interruption between two decisions counts too.
            with self._recording():
                for rows, part in request.without_repeats():
                    accepted[rows] = self._verdicts(part).accepted
                    for query_index, entries in part.groups(np.arange(len(part))):
                        answered = positions[rows[entries]]
                        self._kernel.fold(self._state, query_index, answered, part.at(entries))
                    self._suspended[part.at(np.flatnonzero(~accepted[rows]))] = True
            return request.in_caller_order(accepted)

    def saturating(
        self, compiled: Any, *, cap: Any, seeds: Any = None, subjects: Any = None
    ) -> NDArray[np.object_]:
        """Make the saturating query of every subject, as a column of ids for the other verbs.

        Each is the one that :func:`saturating` makes for the subject's transcript: of all queries
        whose responses all end within the cap, it reveals most about the question. Subjects in the
        same state share a query, and the panel knows it from then on. If the loss of a subject has
        reached the cap, the id is None, which asks nothing.

        ``cap`` is one number for all subjects, or a column. A question with more than two answers
        needs ``seeds``: one for all subjects, or a column. To ask subjects different questions,
        call it once for each question, with ``subjects``.

        >>> import expost as xp
        >>> source = xp.sampling.InsecureSource(1)
        >>> panel = xp.Panel(
        ...     xp.FiniteSet(range(10)),
        ...     filter=xp.BayesianFilter(epsilon=2),
        ...     subjects=["a", "b", "c"],
        ...     source=source,
        ... )
        >>> for question, cap in (("value >= 7", 1), ("value < 3", 2)):
        ...     replies = panel.ask(panel.saturating(question, cap=cap), [2, 8, 5])
        >>> panel.loss.upper.round(6).tolist(), len(panel.queries)
        ([2.0, 2.0, 2.0], 3)
        """
        with self._exclusively():
            tallies = self._state.tallies.of_subject
            if subjects is not None:
                tallies = tallies[self._names.subject_indices(subjects)]
            request = SaturatingRequest.read(compiled, cap, seeds, self._kernel, len(tallies))
            queries, index_of = self._saturating_queries.queries(
                request, tallies, self._state.summands
            )
            ids = [None if query is None else self._names.id_of(query) for query in queries]
            return np.array(ids, dtype=object)[index_of]

    def transcript(self, subject: Subject) -> Transcript:
        """Return the transcript of one subject."""
        transcript = Transcript(self.domain, self.filter)
        for exchange in self._state.exact_exchanges(self._names.subject_index(subject)):
            transcript = transcript.add_position(exchange.query, exchange.position)
        return transcript

    def answers(self) -> Answers:
        """Return all answers and refusals, for estimates and losses."""
        return self._names.answers(self._state.log, self._refusals)

    def __len__(self) -> int:
        return len(self.subjects)

    def __repr__(self) -> str:
        total = int(self._state.exchanges.sum())
        return f"Panel({len(self):,} subjects, {total:,} answered, budget {self.filter.limit})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "domain": self.domain,
            "values": "(not kept)",
            "subjects": f"{len(self):,}",
            "answered": f"{int(self._state.exchanges.sum()):,}",
            "suspended": f"{int(self._suspended.sum()):,}",
            "filter": f"{self.filter.kind}, budget {self.filter.limit}",
        }
        return card("Panel", facts)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a copy of a panel would spend every budget again")

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Decide and record one request while all others wait."""
        if os.getpid() != self._process:
            raise InvalidInput("this panel was started in another process, and only works there")
        with self._lock:
            if self._broken:
                raise InvalidInput("an earlier recording failed, so this panel is incomplete")
            yield

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """Break the panel if recording fails halfway: a response may be seen and not counted."""
        self._broken = True
        yield
        self._broken = False

    def _check_deltas(self, request: QueryRequest) -> None:
        """Refuse queries that need a delta if the filter has none."""
        for query_index in request.distinct:
            if self.filter.pure and self._kernel.registry[query_index].query.approximate:
                message = "needs a filter with a delta, such as ApproximateFilter"
                raise InvalidInput(message, "query")

    def _verdicts(self, request: QueryRequest) -> FilterVerdicts:
        self._check_deltas(request)
        verdicts = self._kernel.decide(self._state, request.query_indices, request.subject_indices)
        indices = request.subject_indices
        active = ~(self._suspended if indices is None else self._suspended[indices])
        accepted, undecided = verdicts.accepted & active, verdicts.undecided & active
        return replace(verdicts, accepted=accepted, undecided=undecided)

    def _capped(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Bounds:
        """Bound losses by the budget too, for every subject who is not suspended."""
        return Bounds(lower, self.filter.cap_accepted(lower, upper, ~self._suspended))

    def _remaining(self, subject_indices: Indices | None) -> NDArray[np.float64]:
        suspended = self._suspended if subject_indices is None else self._suspended[subject_indices]
        return self._kernel.remaining(self._state, suspended, subject_indices)

    def _read_values(self, request: QueryRequest, secret: Secret) -> dict[int, Values]:
        """Return what each query of a request sees of the values."""
        query_indices = request.distinct
        queries = [self._kernel.registry[query_index].query for query_index in query_indices]
        values_by_query = values_of(self.domain, secret, len(request), queries)
        return dict(zip(query_indices, values_by_query, strict=True))

    def _draw(
        self, request: QueryRequest, values_by_query: dict[int, Values], accepted: NDArray[np.bool_]
    ) -> list[tuple[int, Indices, NDArray[Any]]]:
        """Draw fresh responses: query index, entries of subjects, and positions, for each query."""
        try:
            draws = []
            for query_index, entries in request.groups(np.flatnonzero(accepted)):
                values = values_by_query[query_index].indices_of(request.rows(entries))
                positions = self._kernel.registry[query_index].draw(values, self._source)
                draws.append((query_index, entries, positions))
            return draws
        except BaseException as error:
            raise without_frames(error) from None

    def _replies(
        self,
        request: QueryRequest,
        accepted: NDArray[np.bool_],
        draws: list[tuple[int, Indices, NDArray[Any]]],
    ) -> Replies:
        responses_by_query = tuple(
            (request.rows(entries), self._kernel.registry[query_index].responses, positions)
            for query_index, entries, positions in draws
        )
        return Replies(
            request.names,
            self._names.ids(request),
            request.in_caller_order(accepted),
            responses_by_query,
        )
