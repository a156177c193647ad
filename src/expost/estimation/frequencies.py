"""Unbiased estimates of how frequent each value is in a group, for any finite query family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count
from expost._types import Floats
from expost.answers import Answers
from expost.cards import View
from expost.domains import FiniteSet
from expost.errors import at
from expost.estimation.answers import Used, as_answers, finite, level_text
from expost.estimation.decoding import Decoder, Noise, decoder
from expost.estimation.intervals import normal_reach, score_interval
from expost.estimation.values import value_cells, value_columns, value_heads
from expost.files.canonical import plain
from expost.files.frames import Table, as_lists
from expost.numbers import ExactLike, read_confidence

__all__ = ["Frequencies", "estimate_frequencies"]


# Without this, a query without noise would get an infinite weight.
_LEAST_NOISE = 1e-9


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frequencies(Table):
    """An unbiased estimate for every value of the domain, in its order, with an interval.

    :func:`estimate_frequencies` returns it. Act on ``lower`` and ``upper``, which are between 0
    and 1.

    >>> import expost as xp
    >>> from expost.estimation import estimate_frequencies
    >>> pairs = [(xp.randomized_response(epsilon=2), "yes")] * 3
    >>> found = estimate_frequencies(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> found.frequency.round(3).tolist(), found.upper.round(3).tolist()
    ([-0.157, 1.157], [0.581, 1.0])
    """

    domain: FiniteSet
    frequency: Floats
    """Unbiased, so an entry may be below 0 or above 1."""
    standard_error: Floats
    """As an estimate for the population from which the subjects are drawn."""
    noise_error: Floats
    """As an estimate for these very subjects: from the noise of the responses alone."""
    lower: Floats
    upper: Floats
    confidence: float
    used: Used
    """How many responses it is made from, and what it assumes."""

    @property
    def subjects(self) -> int:
        """How many subjects gave the responses."""
        return self.used.subjects

    def _view(self) -> View:
        size, numbers = len(self.domain), (self.frequency, self.lower, self.upper)
        return View(
            f"Frequencies({size:,} values, {format_count(self.subjects, 'subject')})",
            {"intervals": level_text(self.confidence), **self.used.facts()},
            (*value_heads(self.domain, self._numbers()), "frequency", "lower", "upper"),
            size,
            lambda place: (
                *value_cells(self.domain, place),
                *(f"{column[place]:.4f}" for column in numbers),
            ),
        )

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them.

        Values with several coordinates or attributes have a column for each.
        """
        numbers = self._numbers()
        return {**value_columns(self.domain, numbers), **numbers}

    def _numbers(self) -> dict[str, Floats]:
        names = ("frequency", "standard_error", "noise_error", "lower", "upper")
        return {name: getattr(self, name) for name in names}

    def tree(self) -> dict[str, Any]:
        """The estimate as JSON, with its columns as lists."""
        columns = {"value": list(self.domain.values), **as_lists(self._numbers())}
        return plain({**columns, "confidence": self.confidence, **self.used.tree()})


def estimate_frequencies(
    answers: Any, *, domain: FiniteSet | None = None, confidence: ExactLike = "0.95"
) -> Frequencies:
    r"""Estimate how frequent every value is in a group, without bias.

    A response y speaks for the values in a set A_y: with probability p for the true value, and
    with probability q for any other one. For the frequency of value j it counts as

    .. math:: \frac{1[j \in A_y] - q}{p - q}

    and the estimate is the mean over the subjects, after several responses of one subject are
    averaged. Every query must tell all values apart by itself; with local hashing, by seeds that
    were drawn at random.

    ``answers`` are :class:`Answers`; or pairs of a query and a response, each from a different
    subject, together with their ``domain``.

    Which queries a subject was asked must not depend on responses. Under a filter it does: then
    use :func:`estimate_distribution`.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> result = estimate_frequencies(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> result.frequency.round(3).tolist(), result.lower.round(3).tolist()
    ([0.763, 0.237], [0.637, 0.131])
    """
    level = float(read_confidence(confidence))
    answers = as_answers(answers, domain)
    values = finite(answers)
    keys = list(answers.queries)
    asked = {key for key, _ in answers.given}
    decoders: dict[str, Decoder] = {}
    for key in keys:
        if key in asked:
            with at(f"queries.{key}"):
                decoders[key] = decoder(answers.queries[key].on(values))
    weights = _weights(answers, decoders)
    counted = np.bincount(answers.codes, weights, len(answers.given))
    total = np.zeros(len(values))
    for weight, (key, place) in zip(counted.tolist(), answers.given, strict=True):
        total += weight * decoders[key].decode(place)
    subjects = len(answers)
    true, other = _noise(answers, decoders, weights)
    used = Used.of(answers, subjects, len(answers.codes), None, likeliest=False)
    return _frequencies(values, total / subjects, true, other, used, level)


def _query_of(answers: Answers, decoders: dict[str, Decoder]) -> NDArray[np.intp]:
    """The index of the query of each row."""
    number = {key: place for place, key in enumerate(decoders)}
    return np.array([number[key] for key, _ in answers.given])[answers.codes]


def _weights(answers: Answers, decoders: dict[str, Decoder]) -> Floats:
    """The weight of each response: larger where there is less noise, and one in all per subject.

    The estimate is unbiased with any weights that do not depend on the responses.
    """
    precision = np.array([1 / (each.noise.typical + _LEAST_NOISE) for each in decoders.values()])
    by_row: Floats = precision[_query_of(answers, decoders)]
    sums = np.add.reduceat(by_row, answers.starts[:-1])
    return np.asarray(by_row / np.repeat(sums, answers.exchanges))


def _noise(
    answers: Answers, decoders: dict[str, Decoder], weights: Floats
) -> tuple[Floats, Floats]:
    """The mean variance of a subject's estimate: for the true value, and for the others."""
    query_of = _query_of(answers, decoders)
    squares = np.bincount(query_of, weights**2, len(decoders)) / len(answers)
    # Responses to one query with a seed share an error; those of different subjects do at worst.
    together = np.bincount(query_of, weights, len(decoders)) ** 2 / len(answers)
    # Queries that differ only in their seeds have the same noise, and there may be very many.
    sums: dict[Noise, Floats] = {}
    for each, *pair in zip(decoders.values(), squares, together, strict=True):
        sums[each.noise] = sums.get(each.noise, np.zeros(2)) + pair
    true, other = np.zeros(1), np.zeros(1)
    for noise, (square, joint) in sums.items():
        true = true + square * noise.true
        other = other + square * noise.other + joint * noise.shared
    return true, other


def _frequencies(
    domain: FiniteSet, frequency: Floats, true: Floats, other: Floats, used: Used, level: float
) -> Frequencies:
    size, subjects = len(domain), used.subjects
    true = np.broadcast_to(true, size)
    others = _others(np.clip(frequency, 0.0, 1.0), other)
    lower, upper = score_interval(
        frequency, others, true - others + 1, subjects, normal_reach(level)
    )
    share = np.clip(frequency, 0.0, 1.0)
    noise = share * true + (1 - share) * others
    result = Frequencies(
        domain,
        frequency,
        np.sqrt((noise + share * (1 - share)) / subjects),
        np.sqrt(noise / subjects),
        lower,
        upper,
        level,
        used,
    )
    for array in (frequency, result.standard_error, result.noise_error, lower, upper):
        array.setflags(write=False)
    return result


def _others(shares: Floats, other: Floats) -> Floats:
    """For each value, the mean variance that subjects with other values contribute."""
    if other.ndim < 2:
        return np.broadcast_to(other, shares.shape)
    size = len(shares)
    among = np.tile(shares, (size, 1))
    np.fill_diagonal(among, 0.0)
    sums = among.sum(axis=1, keepdims=True)
    even = (1 - np.eye(size)) / max(size - 1, 1)
    among = np.where(sums > 0, among / np.where(sums > 0, sums, 1.0), even)
    return np.asarray((among * other).sum(axis=1))
