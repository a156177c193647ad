"""The odometer: what an analyst has learned so far, as an immutable fold over a transcript."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from expost.chain import Chain
from expost.errors import expect
from expost.extrema import Effort, exact_spread, realized_spread
from expost.likelihood import BoxLogLikelihood, LogLikelihood, flat
from expost.loss import total_charge
from expost.queries import Query
from expost.rounding import Enclosure, Nats
from expost.transcript import Exchange, Transcript

__all__ = ["Odometer"]

_ZERO = Enclosure(0.0, 0.0)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Odometer:
    """The realized loss after every exchange; it can fall (paper, section 4.2).

    Everything here is a function of the transcript and, over a box, of the effort. :meth:`add`
    costs one pass over a finite domain; over a box, losses are searched for when asked for.
    """

    transcript: Transcript
    effort: Effort
    log_likelihood: LogLikelihood | BoxLogLikelihood
    basic_history: Chain[Enclosure]
    """The sum of the epsilons at the start and after each exchange."""
    _passes: Chain[Enclosure]
    """The realized losses over a finite domain."""

    def __init__(self, transcript: Transcript, *, effort: Effort | None = None) -> None:
        expect(transcript, Transcript, "a transcript")
        expect(effort, Effort | None, "an Effort")
        self._set("transcript", transcript)
        self._set("effort", effort or Effort())
        self._set("log_likelihood", flat(transcript.domain))
        self._set("basic_history", Chain([_ZERO]))
        self._set("_passes", Chain([_ZERO]))
        for exchange in transcript.exchanges:
            self._absorb(exchange)

    def add(self, query: Query, response: Any) -> Odometer:
        """The odometer after one more exchange."""
        longer = object.__new__(Odometer)
        longer._set("transcript", self.transcript.add(query, response))
        for name in ("effort", "log_likelihood", "basic_history", "_passes"):
            longer._set(name, getattr(self, name))
        longer._absorb(longer.transcript.exchanges[-1])
        return longer

    def _absorb(self, exchange: Exchange) -> None:
        total = self.log_likelihood.add(exchange)
        spent = self.spent + exchange.query.charge(self.transcript.domain).enclosure
        self._set("log_likelihood", total)
        self._set("basic_history", self.basic_history.plus(spent))
        if isinstance(total, LogLikelihood):
            self._set("_passes", self._passes.plus(realized_spread(total, spent, self.effort)))

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @cached_property
    def loss(self) -> Enclosure:
        """The realized loss now, in nats."""
        if isinstance(self.log_likelihood, LogLikelihood):
            return self._passes[-1]
        return realized_spread(self.log_likelihood, self.spent, self.effort)

    @cached_property
    def history(self) -> Chain[Enclosure]:
        """The realized loss at the start and after each exchange."""
        if isinstance(self.log_likelihood, LogLikelihood):
            return self._passes
        losses, step = (
            Chain([_ZERO]),
            Odometer(Transcript(self.transcript.domain), effort=self.effort),
        )
        for exchange in self.transcript.exchanges:
            step = step.add(exchange.query, exchange.response)
            losses = losses.plus(step.loss)
        return losses

    @property
    def spent(self) -> Enclosure:
        """The sum of the epsilons now, which is what basic composition says."""
        return self.basic_history[-1]

    @property
    def exact_spent(self) -> Nats:
        """The same, exactly."""
        domain = self.transcript.domain
        if isinstance(self.log_likelihood, LogLikelihood):
            summands = self.log_likelihood.tally.values()
            return total_charge((part.query.charge(domain), part.times) for part in summands)
        return total_charge((step.query.charge(domain), 1) for step in self.transcript.exchanges)

    @property
    def exact_loss(self) -> Nats:
        """The realized loss over a finite domain, exactly."""
        assert isinstance(self.log_likelihood, LogLikelihood), "over a box nothing is exact"
        return exact_spread(self.log_likelihood)

    def __len__(self) -> int:
        return len(self.transcript)

    def __repr__(self) -> str:
        # No loss here: over a box it would be searched for.
        return f"Odometer({len(self.__dict__.get('transcript', ()))} exchanges)"
