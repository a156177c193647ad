"""One subject: decide, sample, record, release, in that order (paper, Algorithm 1)."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final

from expost.cards import card, nats
from expost.domains import Domain, Value
from expost.errors import BudgetExceeded, InvalidInput, OutsideDomain, at, expect
from expost.filters import Decision, Filter
from expost.loss.odometer import Odometer
from expost.numbers import Enclosure
from expost.queries import Query
from expost.sampling import Source, SystemSource, draw
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["HALT", "Analyst", "Halt", "Secret", "Session", "interact"]


class Session:
    """Holds a subject's value and answers queries about it as long as the filter accepts.

    Only the draw itself reads the value. Decisions, losses and refusals are functions of the
    transcript, so they tell nothing to who has it, and to others no more than the budget allows;
    ``repr`` and errors never show the value. Several threads may ask at once; their questions are
    answered one after the other. A process that is forked from this one has to start a session of
    its own.
    """

    __slots__ = ("_filter", "_lock", "_obeyed", "_odometer", "_process", "_secret", "_source")

    def __init__(
        self,
        domain: Domain,
        value: Any,
        *,
        filter: Filter,
        source: Source | None = None,
        effort: Effort | None = None,
    ) -> None:
        secret = Secret(value)
        del value  # so that no traceback that prints local variables can show it
        with at("filter"):
            expect(filter, Filter, "a filter, such as BayesianFilter(epsilon=1)")
        self._start(Transcript(domain, filter), filter, secret, source, effort)

    @staticmethod
    def resume(
        transcript: Transcript,
        value: Any,
        *,
        source: Source | None = None,
        effort: Effort | None = None,
    ) -> Session:
        """Go on where a transcript ended, under the filter that it names."""
        secret = Secret(value)
        del value
        expect(transcript, Transcript, "a transcript")
        session = object.__new__(Session)
        session._start(transcript, transcript.guard, secret, source, effort)
        return session

    def _start(
        self,
        transcript: Transcript,
        filter: Filter,
        secret: Secret,
        source: Source | None,
        effort: Effort | None,
    ) -> None:
        with at("source"):
            expect(source, Source | None, "a source of randomness with a method below")
        with at("effort"):
            expect(effort, Effort | None, "an Effort")
        self._filter = filter
        # What was answered before a session goes on may have been released without any filter.
        self._obeyed = filter.pure and not len(transcript)
        self._odometer = Odometer(transcript, effort=effort)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._secret = secret
        self._source = source or SystemSource()
        if not secret.locate(transcript.domain):
            raise OutsideDomain("the value is outside the domain (and is not shown here)")

    def decide(self, query: Query) -> Decision:
        """A dry run: what :meth:`ask` would do, and the numbers. Changes nothing."""
        return self._filter.decide(self._odometer, query)

    def ask(self, query: Query) -> Value:
        """Answer the query with its noise, or raise :class:`BudgetExceeded`."""
        with self._turn():
            decision = self.decide(query)
            if decision.accepted:
                self._record(self._answered(query))
                return self.transcript.exchanges[-1].response
        raise BudgetExceeded(decision)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """While a question is decided and answered, all others wait."""
        # Two processes would each have all of the budget, and some sources the same noise.
        if os.getpid() != self._process:
            raise InvalidInput("this session was started in another process; start one in this one")
        with self._lock:
            yield

    def _answered(self, query: Query) -> Odometer:
        """The odometer with a fresh response, which nobody has seen yet."""
        likelihood = query.on(self.transcript.domain)
        try:
            # No name for what was drawn: tools that report errors show local variables.
            return self._odometer.answered(
                query, draw(likelihood.pmf(self._secret.place), self._source)
            )
        except BaseException as error:
            raise _without_frames(error) from None

    def _record(self, odometer: Odometer) -> None:
        """Keep what was asked and answered, before anybody sees it."""
        self._odometer = odometer

    @property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats, whichever filter decides.

        It bounds what somebody has learned who sees all that was answered. For somebody who saw
        the beginning only it is the largest on the way, ``odometer.peak``.
        """
        return self._filter.realized(self._odometer)

    @property
    def remaining(self) -> float:
        """What is left of the budget, rounded down."""
        return self._filter.remaining(self._odometer)

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
            f"Session({self.transcript.domain!r}, {len(self.transcript)} answered, "
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
            facts["realized loss"] = nats(self.loss.upper)
            facts["remaining"] = nats(self.remaining)
        if self._odometer.peak_is_known:
            facts["at its peak"] = self._peak()
        return card(type(self).__name__, facts)

    def _peak(self) -> str:
        """The peak for people: not above the budget where all of it was accepted by the filter."""
        peak, limit = self._odometer.peak, self._filter.budget.enclosure
        if self._obeyed:
            peak = self._filter.capped(peak)
        lower, upper = nats(peak.lower), nats(peak.upper)
        straddles = self._filter.pure and peak.lower <= limit.upper < peak.upper
        return f"{lower} to {upper}" if straddles and lower != upper else upper

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a session holds a secret and is not copied; save its transcript")


class Secret:
    """A subject's value, and then only its place in the domain; no repr shows either.

    There is one of it: it is neither copied nor pickled.
    """

    __slots__ = ("_value", "place")

    def __init__(self, value: Any) -> None:
        self._value = value
        self.place: Any = None

    def locate(self, domain: Domain) -> bool:
        """Whether the value is in the domain."""
        try:
            self.place, self._value = domain.locate(self._value), None
        except BaseException as error:
            raise _without_frames(error) from None
        return self.place is not None

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not copied")


def _without_frames(error: BaseException) -> BaseException:
    """An error that tells nothing of where it happened.

    What looks for a value or draws a response has local variables from which the value follows.
    Tools that report errors show them, also those of an interrupt or of a source that fails.
    """
    found: list[BaseException | None] = [error]
    for each in found:
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            found += [each.__context__, each.__cause__]
    return error


class Halt(Enum):
    """What an analyst says to end an interaction."""

    HALT = "halt"


HALT: Final = Halt.HALT

Analyst = Callable[[Transcript, Callable[[Query], Decision]], Query | Halt]
"""Sees the transcript and a dry run of the filter, and gives the next query or HALT."""


def interact(analyst: Analyst, session: Session) -> Transcript:
    """Let an adaptive analyst ask until it halts (paper, Algorithm 1).

    A refused query changes nothing and the analyst has another turn. Giving it once more before
    anything was answered ends the interaction: it would be refused for ever.
    """
    refused: list[Query] = []
    while True:
        query = analyst(session.transcript, session.decide)
        if query is HALT:
            return session.transcript
        expect(query, Query, "a query or HALT, from the analyst")
        assert isinstance(query, Query)
        if query in refused:
            return session.transcript
        try:
            session.ask(query)
            refused = []
        except BudgetExceeded:
            refused.append(query)
