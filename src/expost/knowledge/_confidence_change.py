"""The change of the confidence in a statement, and the largest that the budget allows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from expost.domains import Variable
from expost.files.canonical import plain_tree
from expost.knowledge._belief import Belief
from expost.knowledge._gain import allowed_confidence, nats_of
from expost.knowledge._record_belief import RecordBelief
from expost.knowledge._samples import Samples, estimated_gain
from expost.knowledge._statement import Statement
from expost.loss import Replay
from expost.numbers import Enclosure, Nats
from expost.queries import About
from expost.transcript import Transcript

__all__ = ["ConfidenceChange", "confidence_change"]

State = Literal["respected", "respected with a delta", "not respected", "undecided", "none"]

_RESPECTED = {"respected": True, "respected with a delta": True, "not respected": False}


@dataclass(frozen=True, slots=True)
class ConfidenceChange:
    """The confidence in a statement before and after the responses, and its possible range."""

    statement: str
    before: Fraction
    after: float
    #: In nats, with the sign of the change; None if the prior rules the statement out.
    gain: float | None
    #: The standard error of the gain, if the prior is a sample.
    standard_error: float | None
    #: The realized loss: no confidence in any statement has changed by more.
    loss: Enclosure
    #: The largest loss along the way, for an observer who saw only the first responses.
    peak: Enclosure
    budget: Nats | None
    #: The number of the first exchange, from 1, that the filter certainly refuses.
    first_refused: int | None
    #: Whether the filter's budget was respected at every exchange, and bounds what is learned.
    state: State
    #: The range that the confidence cannot leave within the budget.
    #:
    #: It follows from the realized loss instead if there is no budget, if it is undecided whether
    #: it was respected, or if it has a delta, because such a budget bounds no single outcome. If
    #: the budget was not respected it follows from the peak: the loss at the end would hide the
    #: breach.
    allowed: Enclosure
    #: For records, the assumption about attributes for which the prior has no probabilities.
    assumed: str = ""

    def tree(self) -> dict[str, Any]:
        """Return the change as JSON."""
        shape: dict[str, Any] = {
            "statement": self.statement,
            "before": float(self.before),
            "after": self.after,
            "gain": None if self.gain is None else self.after / float(self.before),
            "gain_nats": self.gain,
            "loss": self.loss,
            "floor": self.allowed.lower,
            "ceiling": self.allowed.upper,
            "budget": None if self.budget is None else self.budget.nearest,
            "budget_respected": _RESPECTED.get(self.state),
            "first_refused": self.first_refused,
            "peak": self.peak,
        }
        if self.assumed:
            shape["assumed"] = self.assumed
        if self.standard_error is not None:
            shape["standard_error"] = self.standard_error
        return plain_tree(shape)


def confidence_change(
    replay: Replay, prior: Belief | RecordBelief | Samples, statement: str
) -> ConfidenceChange:
    """Compute how the responses changed the confidence in a statement, under this prior.

    Args:
        replay: The responses, as :func:`replay` returns them.
        prior: The belief before the first response.
        statement: A statement about the value, such as ``"age >= 60"``.
    """
    transcript = replay.odometer.transcript
    gain: float | None
    assumed = ""
    if isinstance(prior, Samples):
        estimate = estimated_gain(prior, statement, transcript)
        before, after, gain = estimate.before, estimate.after, estimate.gain
        error: float | None = estimate.standard_error
    else:
        claim = Statement(prior.domain, statement)
        if isinstance(prior, RecordBelief):
            variables = {*claim.variables, *_queried_variables(transcript)}
            prior = prior.over(step for _, step in variables if step is not None)
            assumed = prior.in_words({name for name, _ in variables})
        before, exact_after = prior.confidence(claim), prior.updated(transcript).confidence(claim)
        after, gain, error = float(exact_after), None, None
        if before:
            change = nats_of(exact_after / before)
            gain = change.upper if change.upper > 0 else change.lower
    guard, state = replay.filter, _state(replay)
    limit: Nats | Enclosure = replay.loss
    if guard is not None and guard.loss_limit is not None and state == "respected":
        limit = guard.loss_limit
    elif state == "not respected":
        limit = replay.peak
    return ConfidenceChange(
        statement=statement,
        before=before,
        after=after,
        gain=gain,
        standard_error=error,
        loss=replay.loss,
        peak=replay.peak,
        budget=None if guard is None else guard.budget_of_person,
        first_refused=replay.first_refused,
        state=state,
        allowed=allowed_confidence(before, limit),
        assumed=assumed,
    )


def _queried_variables(transcript: Transcript) -> set[Variable]:
    """Return the attributes that queries are about, each with the step of the query."""
    queries = [part.query for part in transcript.tally if isinstance(part.query, About)]
    return {(name, query.step) for query in queries for name in query.names}


def _state(replay: Replay) -> State:
    if replay.filter is None or replay.filter.budget_of_person is None:
        return "none"
    if replay.respected is None:
        return "undecided"
    if not replay.respected:
        return "not respected"
    return "respected" if replay.filter.loss_limit else "respected with a delta"
