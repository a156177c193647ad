"""What estimates are made from: answers of many subjects, or pairs of a query and a response."""

from __future__ import annotations

import warnings
from typing import Any

from expost.answers import Answers
from expost.domains import Attributes, Box, FiniteSet, some
from expost.errors import InvalidInput

__all__ = ["as_answers", "finite"]


def as_answers(given: Any, domain: Any) -> Answers:
    """Answers as they are, or made from pairs, each from a different subject.

    A warning points to the caller's caller, which is the user's code.
    """
    if isinstance(given, Answers):
        if domain is not None and domain != given.domain:
            raise InvalidInput("is not that of the answers, which have one", "domain")
        if not given.complete:
            message = "the answers are incomplete: who was asked may depend on what is missing"
            warnings.warn(f"{message}, and estimates can be biased", UserWarning, stacklevel=3)
        return given
    return Answers.of_pairs(domain, given)


def finite(answers: Answers) -> FiniteSet:
    """The domain of answers, where it has to be finite."""
    domain: FiniteSet = answers.domain.asked(_Finite())
    return domain


class _Finite:
    """The domain itself, if its values can be listed."""

    def on_set(self, domain: FiniteSet) -> FiniteSet:
        return domain

    def on_attributes(self, domain: Attributes) -> FiniteSet:
        known = some(domain.names)
        raise InvalidInput(f"of which attributes? Take answers.about(…) some of {known}", "domain")

    def on_box(self, domain: Box) -> FiniteSet:
        raise InvalidInput("must be a finite set: the values of a box cannot be listed", "domain")
