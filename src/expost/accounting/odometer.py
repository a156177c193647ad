"""The odometer: what an analyst has learned so far, as an immutable fold over a transcript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expost.chain import Chain
from expost.errors import expect
from expost.extrema import spread
from expost.likelihood import LogLikelihood
from expost.queries import Query
from expost.rounding import Enclosure
from expost.transcript import Exchange, Transcript

__all__ = ["Odometer"]

_ZERO = Enclosure(0.0, 0.0)


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Odometer:
    """The realized loss after every exchange; it can fall (paper, section 4.2).

    Everything here is a function of the transcript. :meth:`add` costs one pass over the domain.
    """

    transcript: Transcript
    log_likelihood: LogLikelihood
    history: Chain[Enclosure]
    """The realized loss at the start and after each exchange."""
    basic_history: Chain[Enclosure]
    """The sum of the epsilons at the start and after each exchange."""

    def __init__(self, transcript: Transcript) -> None:
        self._set("history", Chain([_ZERO]))
        self._set("basic_history", Chain([_ZERO]))
        expect(transcript, Transcript, "a transcript")
        self._set("transcript", transcript)
        self._set("log_likelihood", LogLikelihood.flat(transcript.domain))
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """The odometer after one more exchange."""
        longer = object.__new__(Odometer)
        longer._set("transcript", self.transcript.add(query, response))
        longer._set("log_likelihood", self.log_likelihood)
        longer._set("history", self.history)
        longer._set("basic_history", self.basic_history)
        longer._absorb(longer.transcript.exchanges[-1])
        return longer

    def _absorb(self, exchange: Exchange) -> None:
        log_likelihood = self.log_likelihood.add(exchange)
        spent = self.spent + exchange.query.charge(self.transcript.domain).enclosure
        loss = spread(log_likelihood)
        # Rounding alone never lifts a loss above what basic composition would say.
        upper = max(loss.lower, min(loss.upper, spent.upper))
        self._set("log_likelihood", log_likelihood)
        self._set("history", self.history.plus(Enclosure(loss.lower, upper)))
        self._set("basic_history", self.basic_history.plus(spent))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""
        return self.history[-1]

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons now, which is what basic composition says."""
        return self.basic_history[-1]

    def __len__(self) -> int:
        return len(self.history) - 1

    def __repr__(self) -> str:
        return f"Odometer({len(self)} exchanges, loss at most {self.loss.upper:.6g})"
