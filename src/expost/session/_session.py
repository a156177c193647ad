"""One subject: decide, sample, record, release, in that order (paper, Algorithm 1)."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import Enum
from typing import Any, Final, Protocol, runtime_checkable

from expost._format import format_nats
from expost.cards import card
from expost.domains import Domain, Value
from expost.errors import BudgetExceeded, InvalidInput, expect
from expost.filters import Decision, Filter, PureFilter
from expost.loss import Odometer
from expost.numbers import Enclosure
from expost.queries import Query, check_query
from expost.sampling import Source, SystemSource, check_source, draw
from expost.session._secret import Secret, scrub_traceback
from expost.session._secret_value import ValueSource, wrap_value
from expost.solver import Effort
from expost.transcript import Exchange, Transcript

__all__ = ["HALT", "Analyst", "Halt", "Memory", "Session", "Store", "interact"]


@runtime_checkable
class Store(Protocol):
    """Keeps the exchanges of one subject, one after the other.

    A session takes a turn, decides, draws a response, has it recorded, and only then releases it.
    A recorded exchange is spent, whether or not its response was released. Pass a store of your
    own to :meth:`Session.resume`.
    """

    @abstractmethod
    def turn(self, odometer: Odometer) -> AbstractContextManager[Odometer]:
        """Keep others from recording, and give what is recorded by now.

        That is ``odometer`` and what others have added to it since. Raise an error otherwise.
        """

    @abstractmethod
    def record(self, exchange: Exchange) -> None:
        """Add an exchange durably: once this returns, no crash loses it.

        It is called at most once in a turn. If it fails, nothing is released, and the error loses
        its traceback, whose variables may show the response.
        """

    def check(self, transcript: Transcript, query: Query) -> None:
        """Refuse a query that could not be recorded after this transcript; none by default."""
        return


class Memory(Store):
    """Keeps nothing beyond the process: the session itself has the transcript."""

    @contextmanager
    def turn(self, odometer: Odometer) -> Iterator[Odometer]:
        yield odometer

    def record(self, exchange: Exchange) -> None:
        pass


class Session:
    """Holds a subject's value and answers queries about it as long as the filter accepts.

    Only the draw of a response reads the value. Decisions, losses and refusals are functions of the
    transcript: they reveal nothing new to those who have it, and no more than the budget allows
    to others. ``repr`` and errors never show the value. Several threads may ask at once; they are
    answered one after the other. A forked process has to start a session of its own.

    Args:
        domain: The values that the subject may have.
        value: The subject's value; on attributes that change, the record at the first step.
        filter: The privacy filter that decides which queries are answered.
        source: The source of randomness, by default that of the operating system.
        effort: The limits of searches on a box.

    Raises:
        OutsideDomain: The value is not in the domain. The error does not show it.

    >>> import expost as xp
    >>> smokes = xp.FiniteSet(["no", "yes"])
    >>> session = xp.Session(smokes, "yes", filter=xp.BayesianFilter(epsilon=1))
    >>> query = xp.randomized_response(epsilon=1)
    >>> session.ask(query) in ("no", "yes"), round(session.loss.upper, 6)
    (True, 1.0)
    >>> decision = session.decide(query)
    >>> decision.accepted, round(decision.loss_at_worst.upper, 6)
    (False, 2.0)
    """

    __slots__ = (
        "_filter", "_lock", "_obeyed", "_odometer", "_process", "_source", "_store", "_value",
    )  # fmt: skip

    def __init__(
        self,
        domain: Domain,
        value: Any,
        *,
        filter: Filter,
        source: Source | None = None,
        effort: Effort | None = None,
    ) -> None:
        secret = wrap_value(value, first=True)
        del value  # so that no traceback that prints local variables can show it
        expect(filter, Filter, "a filter, such as BayesianFilter(epsilon=1)", "filter")
        self._start(Transcript(domain, filter), filter, secret, Memory(), source, effort)

    @staticmethod
    def resume(
        transcript: Transcript,
        value: Any,
        *,
        store: Store | None = None,
        source: Source | None = None,
        effort: Effort | None = None,
    ) -> Session:
        """Continue a transcript under the filter that it names.

        Args:
            transcript: The transcript so far.
            value: The subject's value; where attributes change, a list of the records at all steps
                so far, or a :class:`HistoryFile`.
            store: A store that already holds the transcript and records what follows. By default
                nothing is kept beyond the process.
            source: The source of randomness, by default that of the operating system.
            effort: The limits of searches on a box.

        Raises:
            InvalidInput: The transcript names no filter, or is ahead of the records.
            OutsideDomain: The value is not in the domain. The error does not show it.
        """
        secret = wrap_value(value)
        del value
        expect(transcript, Transcript, "a transcript")
        expect(store, Store | None, "a store with methods turn, record and check", "store")
        session, guard = object.__new__(Session), transcript.required_filter
        session._start(transcript, guard, secret, store or Memory(), source, effort)
        return session

    def _start(
        self,
        transcript: Transcript,
        filter: Filter,
        secret: ValueSource,
        store: Store,
        source: Source | None,
        effort: Effort | None,
    ) -> None:
        check_source(source)
        expect(effort, Effort | None, "an Effort", "effort")
        self._filter = filter
        # Exchanges from before the session may have been released without any filter.
        self._obeyed = not len(transcript)
        self._odometer = Odometer(transcript, effort=effort)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._source = source or SystemSource()
        self._store = store
        self._value = secret.locate_in(transcript.domain)
        self._value.check(transcript)

    def decide(self, query: Query) -> Decision:
        """Decide without asking: whether :meth:`ask` would answer, and the numbers."""
        check_query(query)
        self._check_step(query)
        self._store.check(self.transcript, query)
        return self._filter.decide(self._odometer, query)

    def ask(self, query: Query) -> Value:
        """Answer the query with its noise.

        Returns:
            The response. It is recorded before it is returned.

        Raises:
            BudgetExceeded: The filter refuses the query. Nothing was drawn or spent.
            InvalidInput: The query does not fit the domain, or its step has not come.
        """
        with self._turn():
            decision = self.decide(query)
            if decision.accepted:
                self._odometer = self._draw_and_record(query)
                return self.transcript.exchanges[-1].response
        raise BudgetExceeded(decision)

    def next(self, changes: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        """Advance to the next step, with the new values of the attributes that changed.

        All others stay as they are. Call it at every step, whether or not anything changed: calls
        only after a change would reveal the change. If a value changed more often or farther than
        its attribute allows, the session answers within the limits, and no output reveals that.

        >>> import expost as xp
        >>> person = xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"]))
        >>> session = xp.Session(
        ...     person, {"region": "north", "smokes": "no"}, filter=xp.BayesianFilter(epsilon=2)
        ... )
        >>> session.next(smokes="yes")
        >>> session.step
        2
        >>> answer = session.ask(xp.randomized_response(epsilon=1).about("smokes", at=1))
        """
        new = Secret((changes, named))
        del changes, named  # as in __init__
        self._check_process()
        with self._lock:
            self._value.next(new)

    @property
    def step(self) -> int:
        """The step of the subject, from 1, as far as this session knows."""
        return self._value.step

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Decide and answer one question while all others wait."""
        self._check_process()
        with self._lock, self._store.turn(self._odometer) as recorded:
            self._value.catch_up()
            if recorded is not self._odometer:
                self._value.check(recorded.transcript)
            self._odometer = recorded
            yield

    def _check_process(self) -> None:
        # Two processes would each spend the whole budget, and some sources repeat their noise.
        if os.getpid() != self._process:
            raise InvalidInput("this session was started in another process; start one in this one")

    def _check_step(self, query: Query) -> None:
        """Refuse a step that has not come."""
        if query.step is None:
            return
        query.on(self.transcript.domain)  # which knows whether there are steps at all
        if query.step > self.step:
            raise InvalidInput(
                f"step {query.step} is in the future; the history is at step {self.step}", "at"
            )

    # Frames from here on hold a response that may be neither recorded nor released.
    @scrub_traceback
    def _draw_and_record(self, query: Query) -> Odometer:
        """Return the odometer with a fresh response, which is recorded."""
        pmf = query.on(self.transcript.domain).pmf(self._value.position_at(query.step))
        odometer = self._odometer.add_position(query, draw(pmf, self._source))
        self._store.record(odometer.transcript.exchanges[-1])
        return odometer

    @property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats, whichever filter decides.

        It bounds what anyone who sees all responses has learned. For those who saw only the first
        ones, the bound is the largest loss at any point, ``odometer.peak``.
        """
        loss = self._filter.realized(self._odometer)
        # What cancels out is exactly zero, and sums of doubles do not know it.
        return self._odometer.tightest_loss if loss.negligible else loss

    @property
    def remaining(self) -> float:
        """The remaining budget, rounded down."""
        return self._filter.remaining(self._odometer)

    @property
    def remaining_by_unit(self) -> dict[str, float]:
        """What remains of a budget at a level, for each unit that a query has touched.

        If several filters are at a level, it is the least that remains.
        """
        result: dict[str, float] = {}
        for filter_ in self._filter.members:
            if isinstance(filter_, PureFilter):
                for unit, amount in filter_.remaining_by_unit(self._odometer).items():
                    result[unit] = min(amount, result.get(unit, amount))
        return result

    @property
    def odometer(self) -> Odometer:
        """The odometer, with its history."""
        return self._odometer

    @property
    def transcript(self) -> Transcript:
        """All that was asked and answered; it holds no secret."""
        return self._odometer.transcript

    def __repr__(self) -> str:
        if not hasattr(self, "_odometer"):
            return "Session(not started)"
        return (
            f"Session({self.transcript.domain}, {len(self.transcript)} answered, "
            f"budget {self._filter.limit})"
        )

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {
            "domain": self.transcript.domain,
            "value": "(not shown)",
            "answered": len(self.transcript),
            "filter": f"{self._filter.kind}, budget {self._filter.limit}",
        }
        if self._odometer.loss_is_known:
            facts["realized loss"] = self.loss.shown()
            levels = dict.fromkeys(one.level for one in self._filter.members if one.is_at_level)
            for level in levels:
                facts[f"about {level.about}"] = self._odometer.at_level(level).loss.shown()
            if levels:
                facts["not covered"] = " ".join(level.gap for level in levels)
            facts["remaining"] = self._filter.remaining_text(self._odometer)
        if self._odometer.peak_is_known:
            facts["at its peak"] = self._peak()
        return card(type(self).__name__, facts)

    def _peak(self) -> str:
        """Format the peak: not above the budget if the filter accepted everything."""
        peak, limit = self._odometer.peak, self._filter.loss_limit
        if self._obeyed:
            peak = self._filter.capped(peak)
        lower, upper = format_nats(peak.lower), peak.shown()
        straddles = limit is not None and peak.lower <= limit.enclosure.upper < peak.upper
        return f"{lower} to {upper}" if straddles and lower != upper else upper

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a session holds a secret and is not copied; save its transcript")


class Halt(Enum):
    """The type of HALT, which an analyst returns to end an interaction."""

    HALT = "halt"


HALT: Final = Halt.HALT

#: Takes the transcript and a dry run of the filter, and returns the next query or HALT.
Analyst = Callable[[Transcript, Callable[[Query], Decision]], Query | Halt]


def interact(analyst: Analyst, session: Session) -> Transcript:
    """Let an adaptive analyst ask until it halts (paper, Algorithm 1).

    A refused query changes nothing, and the analyst may try another one. Asking it again before
    anything else was answered ends the interaction, because it would be refused again.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=1)
    >>> session = xp.Session(xp.FiniteSet(["no", "yes"]), "no", filter=xp.BasicFilter(epsilon=3))
    >>> len(interact(lambda transcript, decide: query if decide(query) else HALT, session))
    3
    """
    refused: list[Query] = []
    while True:
        query = analyst(session.transcript, session.decide)
        if query is HALT:
            return session.transcript
        expect(query, Query, "a query or HALT, from the analyst")
        if query in refused:
            return session.transcript
        try:
            session.ask(query)
            refused = []
        except BudgetExceeded:
            refused.append(query)
