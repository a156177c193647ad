"""The odometer: what an analyst has learned so far, as an immutable fold over a transcript."""

from __future__ import annotations

from typing import Any

from expost.chain import Chain
from expost.errors import expect
from expost.extrema import spread
from expost.likelihood import LogLikelihood
from expost.queries import Query
from expost.rounding import Enclosure
from expost.transcript import Exchange, Transcript

__all__ = ["Odometer"]


class Odometer:
    """The realized loss after every exchange; it can fall (paper, section 4.2).

    Everything here is a function of the transcript. :meth:`add` costs one pass over the domain.
    """

    __slots__ = ("history", "log_likelihood", "spent", "transcript")

    transcript: Transcript
    log_likelihood: LogLikelihood
    history: Chain[Enclosure]
    """The loss at the start and after each exchange."""
    spent: Enclosure
    """The sum of the epsilons, which is what basic composition says."""

    def __init__(self, transcript: Transcript) -> None:
        self.spent = Enclosure(0.0, 0.0)
        self.history = Chain([self.spent])
        expect(transcript, Transcript, "a transcript")
        self.transcript = transcript
        self.log_likelihood = LogLikelihood.flat(transcript.domain)
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """The odometer after one more exchange."""
        result = object.__new__(Odometer)
        result.transcript = self.transcript.add(query, response)
        result.log_likelihood = self.log_likelihood
        result.spent = self.spent
        result.history = self.history
        result._absorb(result.transcript.exchanges[-1])
        return result

    def _absorb(self, exchange: Exchange) -> None:
        self.log_likelihood = self.log_likelihood.add(exchange)
        self.spent += exchange.query.charge(self.transcript.domain).enclosure
        loss = spread(self.log_likelihood)
        # Rounding alone never lifts a loss above what basic composition would say.
        upper = max(loss.lower, min(loss.upper, self.spent.upper))
        self.history = self.history.plus(Enclosure(loss.lower, upper))

    @property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""
        return self.history[-1]

    def __len__(self) -> int:
        return len(self.history) - 1

    def __repr__(self) -> str:
        return f"Odometer({len(self)} exchanges, loss at most {self.loss.upper:.6g})"
