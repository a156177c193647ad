"""What estimates are made from: answers of many subjects, or pairs of a query and a response."""

from __future__ import annotations

import warnings
from typing import Any

from expost.answers import Answers
from expost.domains import FiniteSet
from expost.domains import finite as listed
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
    reason = "must be a finite set: the values of a box cannot be listed"
    return listed(answers.domain, reason, "domain")
