"""Estimates on request: shares, means and distributions, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from expost.answers import Answers, Subject
from expost.errors import InvalidInput
from expost.estimation import select_for_likelihood
from expost.report._estimates import (
    EstimateReport,
    report_frequencies,
    report_likelihood,
    report_mean,
    with_outcomes,
)
from expost.report._quantities import find_attributes, find_mean, share_of_statement

__all__ = ["EstimateRequest", "estimate"]


@dataclass(frozen=True, slots=True)
class EstimateRequest:
    """The quantity to estimate, as the command ``expost estimate`` names it."""

    #: The subjects; None for everybody.
    subjects: Set[Subject] | None = None
    mean: str | None = None
    share: str | None = None
    frequencies: bool = False
    likelihood: bool = False
    about: tuple[str, ...] | None = None
    step: int | None = None
    confidence: str = "0.95"

    def __post_init__(self) -> None:
        if sum((self.mean is not None, self.share is not None, self.frequencies)) > 1:
            raise InvalidInput("expected at most one of mean, share and frequencies")
        if self.likelihood and self.mean is None:
            raise InvalidInput("expected likelihood only with mean")


def estimate(
    answers: Answers, request: EstimateRequest, progress: Callable[[int, int], None]
) -> Mapping[str, Any]:
    """Estimate what is requested; return the report as JSON."""
    if request.subjects is not None:
        answers = answers.select(request.subjects)
    quantity, step = None, request.step
    if request.share is not None:
        quantity = share_of_statement(answers.domain, request.share)
    elif request.mean is not None:
        quantity = find_mean(answers, request.mean, step)
    scored = None if quantity is None or request.likelihood else quantity.query
    if scored is not None:
        return with_outcomes(
            report_mean(answers, scored, confidence=request.confidence), answers, scored
        ).tree()
    names = request.about
    if quantity is not None and quantity.about is not None:
        names, step = quantity.about
    key = None if quantity is None else quantity.query
    chosen = find_attributes(answers, names, step, key=key)
    report: EstimateReport
    if request.frequencies:
        if chosen is not None:
            answers = answers.about(*chosen[0], at=chosen[1])
        report = report_frequencies(answers, confidence=request.confidence)
    else:
        answers, chosen = select_for_likelihood(answers, chosen, planned=False)
        report = report_likelihood(
            answers, chosen, quantity, confidence=request.confidence, progress=progress
        )
    return with_outcomes(report, answers, None).tree()
