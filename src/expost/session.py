"""One subject: decide, sample, record, release, in that order (paper, Algorithm 1)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from expost.accounting import Decision, Filter, Odometer, filter_of
from expost.domains import Domain, Value
from expost.errors import BudgetExceeded, InvalidInput, OutsideDomain, at, expect
from expost.queries import Query
from expost.rounding import Enclosure
from expost.sampling import Source, SystemSource, draw
from expost.transcript import Transcript

__all__ = ["HALT", "Analyst", "Halt", "Session", "interact"]


class Session:
    """Holds a subject's value and answers queries about it as long as the filter accepts.

    Only the draw itself reads the value. Decisions, losses and refusals are functions of the
    transcript, so they may be shown to anybody; ``repr`` and errors never show the value. Several
    threads may ask at once; their questions are answered one after the other.
    """

    __slots__ = ("_filter", "_lock", "_odometer", "_secret", "_source")

    def __init__(
        self, domain: Domain, value: Any, *, filter: Filter, source: Source | None = None
    ) -> None:
        secret = _Secret(domain, value)
        del value  # so that no traceback that prints local variables can show it
        with at("filter"):
            expect(filter, Filter, "a filter, such as BayesianFilter(epsilon=1)")
        self._start(Transcript(domain, filter.spec), filter, secret, source)

    @classmethod
    def resume(cls, transcript: Transcript, value: Any, *, source: Source | None = None) -> Session:
        """Go on where a transcript ended, under the filter that it names."""
        secret = _Secret(getattr(transcript, "domain", None), value)
        del value
        expect(transcript, Transcript, "a transcript")
        if transcript.filter is None:
            raise InvalidInput("the transcript names no filter")
        session = object.__new__(cls)
        session._start(transcript, filter_of(transcript.filter), secret, source)
        return session

    def _start(
        self, transcript: Transcript, filter: Filter, secret: _Secret, source: Source | None
    ) -> None:
        with at("source"):
            expect(source, Source | None, "a source of randomness with a method below")
        self._filter = filter
        self._odometer = Odometer(transcript)
        self._lock = threading.Lock()
        self._secret = secret
        self._source = source or SystemSource()
        if secret.position is None:
            raise OutsideDomain("the value is outside the domain (and is not shown here)")

    def decide(self, query: Query) -> Decision:
        """A dry run: what :meth:`ask` would do, and the numbers. Changes nothing."""
        return self._filter.decide(self._odometer, query)

    def ask(self, query: Query) -> Value:
        """Answer the query with its noise, or raise :class:`BudgetExceeded`."""
        with self._lock:
            decision = self.decide(query)
            if decision.accepted:
                self._odometer = self._odometer.add(query, self._sample(query))
                return self.transcript.exchanges[-1].response
        # Nobody else has to wait while what would fit is worked out.
        raise BudgetExceeded(
            loss=decision.loss,
            loss_at_worst=decision.loss_at_worst,
            budget=decision.budget,
            fits=decision.largest_epsilon,
            undecided=decision.undecided,
        )

    def _sample(self, query: Query) -> Value:
        likelihood = query.on(self.transcript.domain)
        return likelihood.responses[draw(likelihood.pmf(self._secret.position), self._source)]

    @property
    def loss(self) -> Enclosure:
        """The realized loss so far, in nats, whichever filter decides."""
        return self._odometer.loss

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
            f"budget {self._filter.budget})"
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a session holds a secret and is not copied; save its transcript")


class _Secret:
    """Where the subject's value is in the domain; no repr shows it."""

    __slots__ = ("position",)

    def __init__(self, domain: object, value: Any) -> None:
        self.position: Any = domain.locate(value) if isinstance(domain, Domain) else None


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
