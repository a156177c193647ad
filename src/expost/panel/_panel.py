"""Many subjects under one policy, in memory: check, sample, record, release, for all at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._types import Indices
from expost.answers import Answers, Subject
from expost.cards import card
from expost.domains import Domain
from expost.errors import InvalidInput, at, expect
from expost.filters import Filter
from expost.panel._box_state import Search
from expost.panel._kernel import Kernel, Verdicts
from expost.panel._requests import Asking, Naming
from expost.panel._results import Bounds, Decisions, Replies
from expost.panel._saturating import Saturating, Wanted
from expost.panel._selection import Chosen
from expost.panel._values import Values, values_of
from expost.queries import Query
from expost.sampling import Source, SystemSource
from expost.session._secret import Secret, without_frames
from expost.transcript import Transcript

__all__ = ["Panel"]


class Panel:
    """Many subjects on one domain, each with a budget of its own under one filter.

    The verbs are those of a :class:`Session`: :meth:`decide` says who would answer, :meth:`ask`
    draws and records the responses of those who do, and :meth:`record` takes in what devices drew
    and sent. All of them take a query for everybody, or a column of query ids. Decisions and losses
    are those of a session for each subject, worked out in arrays.

    A panel keeps no values. :meth:`ask` takes them each time, and nothing but the draw of a
    response looks at them.

    ``subjects`` are names: texts or integers. ``queries`` gives queries their ids; others go by
    their content ids. ``source`` is where randomness comes from, by default the operating system;
    a seeded one is for simulations. On a box, where losses are searched for, ``search`` says how
    hard, and in how many processes.

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
        with at("domain"):
            expect(domain, Domain, "a FiniteSet, Attributes or a Box")
        with at("filter"):
            expect(filter, Filter, "a filter, such as BayesianFilter(epsilon=1)")
        with at("source"):
            expect(source, Source | None, "a source of randomness, such as InsecureSource(38)")
        with at("search"):
            expect(search, Search | None, "a Search, such as Search(processes=2)")
        self._kernel = Kernel(domain, filter, search)
        self._naming = Naming(subjects, {} if queries is None else queries, self._kernel)
        self._state = self._kernel.start(len(self._naming.subjects))
        self._saturating = Saturating(self._kernel.questions)
        self._suspended = np.zeros(len(self._naming.subjects), dtype=np.bool_)
        self._refusals: list[tuple[int, Indices]] = []
        self._source = source or SystemSource()
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._broken = False

    @property
    def domain(self) -> Domain:
        """What a subject's value can be."""
        return self._kernel.domain

    @property
    def filter(self) -> Filter:
        """What decides who answers what."""
        return self._kernel.filter

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """The names of all subjects. Arrays are in their order."""
        return self._naming.subjects

    @property
    def queries(self) -> dict[str, Query]:
        """The queries that are known, by their ids."""
        return self._naming.queries

    @property
    def loss(self) -> Bounds:
        """The realized loss of every subject now, in nats."""
        return self._capped(*self._state.losses(Chosen(len(self))))

    @property
    def peak(self) -> Bounds:
        """The largest realized loss of every subject on the way."""
        return self._capped(*self._state.peaks(Chosen(len(self))))

    @property
    def spent(self) -> Bounds:
        """The sum of the epsilons of every subject, which is what basic composition says."""
        lower, upper = self._state.spent.around(Chosen(len(self)), None)
        return Bounds(lower, self.filter.cap_spent(lower, upper, ~self._suspended))

    @property
    def remaining(self) -> NDArray[np.float64]:
        """Budget minus what counts against it, rounded down; 0 for suspended subjects."""
        return self._remaining(None)

    @property
    def exchanges(self) -> NDArray[np.int32]:
        """How many responses every subject gave."""
        return self._state.exchanges.copy()

    @property
    def suspended(self) -> NDArray[np.bool_]:
        """Which subjects answered something that the filter refuses: they are no longer asked."""
        return self._suspended.copy()

    def decide(self, query: Any, subjects: Any = None) -> Decisions:
        """A dry run: who would answer, and the numbers. It changes nothing.

        ``query`` is a query, the id of one, or a column of ids with an entry for each subject.
        ``subjects`` are by default all of them.
        """
        with self._turn():
            asking = self._naming.asking(query, subjects)
            found, remaining = self._verdicts(asking), self._remaining(asking.places)
        return Decisions(
            asking.names,
            asking.as_given(found.accepted),
            asking.as_given(found.undecided),
            Bounds(asking.as_given(found.lower), asking.as_given(found.upper)),
            asking.as_given(remaining),
        )

    def ask(self, query: Any, values: Any, subjects: Any = None) -> Replies:
        """Answer a query with its noise for everybody whose filter accepts it.

        ``values`` has the value of every subject that is asked, in the same order: a column, for
        vectors or records also a frame. Where attributes change it has all of their values so far:
        a list for each subject, from the first step on, of which the limits of the domain make
        what is answered for.

        All of it is recorded before anything is returned. Who is refused has spent nothing.
        """
        secret = Secret(values)
        del values  # so that no traceback that prints local variables can show it
        with self._turn():
            asking = self._naming.asking(query, subjects)
            held = self._held(asking, secret)
            accepted = self._verdicts(asking).accepted
            drawn = self._drawn(asking, held, accepted)
            with self._recording():
                for number, entries, positions in drawn:
                    self._fold(number, asking.at(entries), positions)
                for number, entries in asking.groups(np.flatnonzero(~accepted)):
                    self._refusals.append((number, asking.at(entries)))
            return self._replies(asking, accepted, drawn)

    def record(self, query: Any, responses: Any, subjects: Any = None) -> NDArray[np.bool_]:
        """Take in responses that devices drew and sent themselves.

        Whatever arrived was seen, so all of it is kept and counts. Each is decided about on what
        came before, and what is returned says which of them the filter accepts, in the order of
        the responses. A subject who answered what it refuses is suspended: all that follows is
        refused, and the audit shows it. A subject may be named more than once, for one response
        after the other. If one of the responses is none of its query, nothing is recorded.
        """
        with self._turn():
            asking = self._naming.asking(query, subjects, repeated=True)
            positions = self._naming.positions(asking, responses)
            self._check(asking)
            accepted = np.empty(len(asking), dtype=np.bool_)
            # All of it has been seen, so an interruption between two decisions counts too.
            with self._recording():
                for own, wave in asking.waves():
                    accepted[own] = self._verdicts(wave).accepted
                    for number, entries in wave.groups(np.arange(len(wave))):
                        self._fold(number, wave.at(entries), positions[own[entries]])
                    self._suspended[wave.at(np.flatnonzero(~accepted[own]))] = True
            return asking.as_given(accepted)

    def saturating(
        self, question: Any, *, cap: Any, seeds: Any = None, subjects: Any = None
    ) -> NDArray[np.object_]:
        """The saturating query of every subject, as a column of ids for the other verbs.

        Each is what :func:`saturating` makes of the subject's transcript: of all queries whose
        responses all end within the cap it tells most about the question. It is made once for all
        subjects who are in the same state, and the panel knows it from then on. The id is None,
        which asks nothing, for whom no query ends at the cap, because the loss is there already.

        ``cap`` is one for everybody or a column of them. A question with more than two answers
        needs ``seeds``: one for everybody, or a column. Another question for each subject takes a
        call for each question, with ``subjects``.

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
        with self._turn():
            numbers = self._state.tallies.of_subject
            if subjects is not None:
                numbers = numbers[self._naming.places(subjects)]
            wanted = Wanted.read(question, cap, seeds, self._kernel, len(numbers))
            queries, which = self._saturating.queries(wanted, numbers, self._state.summands)
            ids = [None if query is None else self._naming.id_of(query) for query in queries]
            return np.array(ids, dtype=object)[which]

    def transcript(self, subject: Subject) -> Transcript:
        """What one subject was asked and answered, in order."""
        transcript = Transcript(self.domain, self.filter)
        for exchange in self._state.exact_exchanges(self._naming.place(subject)):
            transcript = transcript.add_position(exchange.query, exchange.position)
        return transcript

    def answers(self) -> Answers:
        """What everybody answered, and who was refused what, for estimates and losses."""
        return self._naming.answers(self._state.log, self._refusals)

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
    def _turn(self) -> Iterator[None]:
        """Decide and record one question while all others wait."""
        if os.getpid() != self._process:
            raise InvalidInput("this panel was started in another process, and only works there")
        with self._lock:
            if self._broken:
                raise InvalidInput("recording failed earlier, so what is here is not complete")
            yield

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """What fails half-way must not go on: something may have been seen and not counted."""
        self._broken = True
        yield
        self._broken = False

    def _check(self, asking: Asking) -> None:
        """Whether the filter has a say about all that is asked."""
        for number in asking.distinct:
            if self.filter.pure and self._kernel.questions[number].query.approximate:
                message = "needs a filter with a delta, such as ApproximateFilter"
                raise InvalidInput(message, "query")

    def _verdicts(self, asking: Asking) -> Verdicts:
        self._check(asking)
        found = self._kernel.decide(self._state, asking.numbers, asking.places)
        shut = self._suspended if asking.places is None else self._suspended[asking.places]
        if shut.any():
            found = Verdicts(
                found.accepted & ~shut, found.undecided & ~shut, found.lower, found.upper
            )
        return found

    def _capped(self, lower: NDArray[np.float64], upper: NDArray[np.float64]) -> Bounds:
        """Bound losses by the budget too, for every subject who is not suspended."""
        return Bounds(lower, self.filter.cap_accepted(lower, upper, ~self._suspended))

    def _remaining(self, places: Indices | None) -> NDArray[np.float64]:
        suspended = self._suspended if places is None else self._suspended[places]
        return self._kernel.remaining(self._state, suspended, places)

    def _held(self, asking: Asking, secret: Secret) -> dict[int, Values]:
        """What each question that is asked sees of the values."""
        numbers = asking.distinct
        queries = [self._kernel.questions[number].query for number in numbers]
        held = values_of(self.domain, secret, len(asking), queries)
        return dict(zip(numbers, held, strict=True))

    def _drawn(
        self, asking: Asking, held: dict[int, Values], accepted: NDArray[np.bool_]
    ) -> list[tuple[int, Indices, NDArray[Any]]]:
        """Fresh responses that nobody has seen yet: to which question, whose, and which."""
        try:
            return [
                (
                    number,
                    entries,
                    self._kernel.questions[number].draw(
                        Values.joined([held[number].some(asking.rows(entries))]), self._source
                    ),
                )
                for number, entries in asking.groups(np.flatnonzero(accepted))
            ]
        except BaseException as error:
            raise without_frames(error) from None

    def _fold(self, number: int, places: Indices, positions: NDArray[Any]) -> None:
        everybody = len(places) == len(self)
        self._kernel.fold(self._state, number, positions, None if everybody else places)

    def _replies(
        self,
        asking: Asking,
        accepted: NDArray[np.bool_],
        drawn: list[tuple[int, Indices, NDArray[Any]]],
    ) -> Replies:
        given = tuple(
            (asking.rows(entries), self._kernel.questions[number].responses, positions)
            for number, entries, positions in drawn
        )
        return Replies(asking.names, self._naming.ids(asking), asking.as_given(accepted), given)
