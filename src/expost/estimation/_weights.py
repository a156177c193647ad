"""Survey weights, scaled to Kish's effective sample size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from expost._format import format_number
from expost._types import Floats
from expost.answers import Answers, Subject
from expost.errors import InvalidInput, at, expect
from expost.files.reading import double

__all__ = ["read_weights"]


def read_weights(answers: Answers, weights: Mapping[Subject, Any]) -> Floats:
    r"""Return the scaled weight of each subject of the answers.

    The weights sum to the effective sample size (Kish 1965, Survey Sampling, section 11.7),

    .. math:: n_{\mathrm{eff}} = \Bigl(\sum_i w_i\Bigr)^2 \Big/ \sum_i w_i^2

    so that intervals are as wide as those from so many subjects of equal weight.

    >>> import expost as xp
    >>> table = {"subject": ["a", "b"], "query": ["q"] * 2, "response": ["no", "yes"]}
    >>> queries = {"q": xp.randomized_response(epsilon=1)}
    >>> answers = xp.Answers(xp.FiniteSet(["no", "yes"]), queries, table)
    >>> read_weights(answers, {"a": 3, "b": 1}).round(3).tolist()
    [1.2, 0.4]
    """
    with at("weights"):
        expect(weights, Mapping, "weights by the names of the subjects")
        numbers = np.empty(len(answers))
        for index, subject in enumerate(answers.subjects):
            if subject not in weights:
                raise InvalidInput(f"subject {subject!r} has none")
            numbers[index] = double(weights[subject])
            if not numbers[index] > 0:
                raise InvalidInput(
                    f"got {format_number(numbers[index])}; expected a number above 0"
                )
    numbers /= numbers.max()  # the squares of huge numbers overflow
    return np.asarray(numbers * (numbers.sum() / (numbers**2).sum()))
