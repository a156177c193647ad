"""Unbiased estimates of how frequent each value is in a group, for any finite query family.

A decoder turns a response into an unbiased estimate of the indicator of each value: numbers c_j(y)
with E[c_j(Y) | x] = 1 if x = j, and 0 otherwise. Their mean over the subjects is the frequency of
value j. Proofs: docs/theory/estimates.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_confidence, format_count, format_fixed
from expost._types import Floats
from expost.answers import Answers
from expost.cards import View
from expost.domains import FiniteSet, Part
from expost.errors import InvalidInput, at
from expost.estimation._intervals import (
    INCONSISTENT,
    binomial_interval,
    normal_quantile,
    score_interval,
    value_cells,
    value_columns,
    value_heads,
)
from expost.estimation._support import LARGEST_TABLE, response_probabilities
from expost.estimation._validity import Provenance, finite_domain, read_answers
from expost.files.canonical import plain_tree
from expost.files.tables import ResultTable, as_lists
from expost.numbers import ExactLike, read_confidence, read_only
from expost.queries import FiniteLikelihood, LiftedLikelihood, Pairwise

__all__ = [
    "Decoder",
    "DecoderVariance",
    "Frequencies",
    "IndicatorDecoder",
    "InverseDecoder",
    "decoder_for",
    "estimate_frequencies",
]


# Without this, a query without noise would get an infinite weight.
_LEAST_NOISE = 1e-9

# With fewer subjects, intervals are exact where they can be, for Wilson's may be too narrow.
_MANY_SUBJECTS = 100


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frequencies(ResultTable):
    """An unbiased estimate for every value of the domain, in its order, with an interval.

    :func:`estimate_frequencies` returns it. Act on ``lower`` and ``upper``, which are between 0
    and 1.

    >>> import expost as xp
    >>> from expost.estimation import estimate_frequencies
    >>> pairs = [(xp.randomized_response(epsilon=2), "yes")] * 3
    >>> found = estimate_frequencies(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> found.frequency.round(3).tolist(), found.upper.round(3).tolist()
    ([-0.157, 1.157], [0.673, 1.0])
    """

    domain: FiniteSet
    #: Unbiased estimates; an entry may be below 0 or above 1.
    frequency: Floats
    #: The error as an estimate for the population from which the subjects are drawn.
    standard_error: Floats
    #: The error as an estimate for these very subjects: from the noise of the responses alone.
    noise_error: Floats
    lower: Floats
    upper: Floats
    #: Whether any share of each value fits the responses; if not, its interval is [0, 1].
    consistent: NDArray[np.bool_]
    confidence: float
    #: The data it was made from, and its assumptions.
    provenance: Provenance

    @property
    def subjects(self) -> int:
        """How many subjects gave the responses."""
        return self.provenance.subjects

    def _view(self) -> View:
        size, columns = len(self.domain), (self.frequency, self.lower, self.upper)
        facts = {"intervals": format_confidence(self.confidence), **self.provenance.facts()}
        if not self.consistent.all():
            facts["but"] = "; ".join(filter(None, (INCONSISTENT, facts.get("but"))))
        return View(
            f"Frequencies({size:,} values, {format_count(self.subjects, 'subject')})",
            facts,
            (*value_heads(self.domain, self._estimates()), "frequency", "lower", "upper"),
            size,
            lambda index: (
                *value_cells(self.domain, index),
                *(format_fixed(column[index], 4) for column in columns),
            ),
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them.

        Values with several coordinates or attributes have a column for each.
        """
        estimates = self._estimates()
        return {**value_columns(self.domain, estimates), **estimates}

    def _estimates(self) -> dict[str, Floats]:
        names = ("frequency", "standard_error", "noise_error", "lower", "upper")
        return {name: getattr(self, name) for name in names}

    def tree(self) -> dict[str, Any]:
        """Return the estimate as JSON, with its columns as lists."""
        columns = {"value": list(self.domain.values), **as_lists(self._estimates())}
        options = {"consistent": self.consistent.tolist(), "confidence": self.confidence}
        return plain_tree({**columns, **options, **self.provenance.tree()})


def estimate_frequencies(
    answers: Any, *, domain: FiniteSet | None = None, confidence: ExactLike = "0.95"
) -> Frequencies:
    r"""Estimate how frequent every value is in a group, without bias.

    A response y supports the values in a set A_y: the true value with probability p, and any other
    one with probability q. For the frequency of value j it counts as

    .. math:: \frac{1[j \in A_y] - q}{p - q}

    and the estimate is the mean over the subjects, after several responses of one subject are
    averaged. Every query must tell all values apart by itself; with local hashing, by seeds that
    were drawn at random.

    Which queries a subject was asked must not depend on responses. Under a filter it does: then
    use :func:`estimate_distribution`.

    Args:
        answers: :class:`Answers`; or pairs of a query and a response, each from a different
            subject.
        domain: The domain of pairs; :class:`Answers` have one.
        confidence: The level of the intervals.

    Returns:
        An unbiased estimate and an interval for every value.

    Raises:
        InvalidInput: If one response to some query does not tell all values apart.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> result = estimate_frequencies(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> result.frequency.round(3).tolist(), result.lower.round(3).tolist()
    ([0.763, 0.237], [0.637, 0.131])
    """
    confidence_level = float(read_confidence(confidence))
    answers = read_answers(answers, domain)
    values = finite_domain(answers)
    queried = {key for key, _ in answers.responses}
    decoders: dict[str, Decoder] = {}
    for key, query in answers.queries.items():
        if key in queried:
            with at(f"queries.{key}"):
                decoders[key] = decoder_for(query.on(values))
    weights = _weights(answers, decoders)
    weight_sums = np.bincount(answers.codes, weights, len(answers.responses))
    sums = np.zeros(len(values))
    for weight, (key, position) in zip(weight_sums.tolist(), answers.responses, strict=True):
        sums += weight * decoders[key].decode(position)
    subjects = len(answers)
    true_variance, other_variance = _mean_variances(answers, decoders, weights)
    provenance = Provenance.of(answers, subjects, len(answers.codes), None, by_likelihood=False)
    return _frequencies(
        values,
        sums / subjects,
        true_variance,
        other_variance,
        _binomial_decoder(answers, decoders),
        provenance,
        confidence_level,
    )


def _binomial_decoder(answers: Answers, decoders: Mapping[str, Decoder]) -> IndicatorDecoder | None:
    """Return the decoder of few subjects who each gave one response, if they have the same one.

    The responses that support a value are then binomial.
    """
    first = next(iter(decoders.values()))
    if len(answers.codes) > len(answers) or len(answers) >= _MANY_SUBJECTS:
        return None
    if not isinstance(first, IndicatorDecoder) or first.variance.shared:
        return None
    weights = {
        (decoder.inside_weight, decoder.outside_weight)
        if isinstance(decoder, IndicatorDecoder)
        else None
        for decoder in decoders.values()
    }
    return first if len(weights) == 1 else None


def _query_of(answers: Answers, decoders: dict[str, Decoder]) -> NDArray[np.intp]:
    """Return the index of the query of each response."""
    query_indices = {key: index for index, key in enumerate(decoders)}
    return np.array([query_indices[key] for key, _ in answers.responses])[answers.codes]


def _weights(answers: Answers, decoders: dict[str, Decoder]) -> Floats:
    """Weigh the responses: more where there is less noise, and one in all per subject.

    The estimate is unbiased with any weights that do not depend on the responses.
    """
    noise = np.array([decoder.variance.typical for decoder in decoders.values()])
    row_precision: Floats = (1 / (noise + _LEAST_NOISE))[_query_of(answers, decoders)]
    sums = np.add.reduceat(row_precision, answers.starts[:-1])
    return np.asarray(row_precision / np.repeat(sums, answers.exchanges))


def _mean_variances(
    answers: Answers, decoders: dict[str, Decoder], weights: Floats
) -> tuple[Floats, Floats]:
    """Average the variance of a subject's estimate: for the true value, and for other values."""
    query_of = _query_of(answers, decoders)
    squares = np.bincount(query_of, weights**2, len(decoders)) / len(answers)
    # Responses to one query with a seed share an error; those of different subjects do at worst.
    shared_squares = np.bincount(query_of, weights, len(decoders)) ** 2 / len(answers)
    # Queries that differ only in their seeds have the same noise, and there may be very many.
    sums: dict[DecoderVariance, Floats] = {}
    for decoder, *pair in zip(decoders.values(), squares, shared_squares, strict=True):
        sums[decoder.variance] = sums.get(decoder.variance, np.zeros(2)) + pair
    true_variance, other_variance = np.zeros(1), np.zeros(1)
    for variance, (square, shared_square) in sums.items():
        true_variance = true_variance + square * variance.true
        other_variance = other_variance + square * variance.other + shared_square * variance.shared
    return true_variance, other_variance


def _frequencies(
    domain: FiniteSet,
    frequency: Floats,
    true: Floats,
    other: Floats,
    binomial: IndicatorDecoder | None,
    provenance: Provenance,
    confidence: float,
) -> Frequencies:
    size, subjects = len(domain), provenance.subjects
    true = np.broadcast_to(true, size)
    share = np.clip(frequency, 0.0, 1.0)
    other_variance = _variance_of_others(share, other)
    slope, quantile = true - other_variance + 1, normal_quantile(confidence)
    if binomial is None:
        lower, upper, consistent = score_interval(
            frequency, other_variance, slope, subjects, quantile
        )
    else:
        lower, upper, consistent = binomial.exact_intervals(frequency, subjects, confidence)
    noise = share * true + (1 - share) * other_variance
    # Shares of exactly 0 and 1 have no variance; the next subject may differ.
    inner_share = np.clip(share, 1 / (subjects + 1), 1 - 1 / (subjects + 1))
    standard_error = np.sqrt((noise + inner_share * (1 - inner_share)) / subjects)
    noise_error = np.sqrt(noise / subjects)
    read_only(frequency, standard_error, noise_error, lower, upper, consistent)
    return Frequencies(
        domain, frequency, standard_error, noise_error, lower, upper, consistent, confidence,
        provenance,
    )  # fmt: skip


def _variance_of_others(shares: Floats, variance: Floats) -> Floats:
    """Average, for each value, the variance that subjects with other values contribute."""
    if variance.ndim < 2:
        return np.broadcast_to(variance, shares.shape)
    size = len(shares)
    other_shares = np.tile(shares, (size, 1))
    np.fill_diagonal(other_shares, 0.0)
    row_sums = other_shares.sum(axis=1, keepdims=True)
    equal_shares = (1 - np.eye(size)) / max(size - 1, 1)
    other_shares = np.where(
        row_sums > 0, other_shares / np.where(row_sums > 0, row_sums, 1.0), equal_shares
    )
    return np.asarray((other_shares * variance).sum(axis=1))


#: A suggestion for queries whose responses do not tell values apart.
LIKELIHOOD_HINT = "estimate_distribution takes any mixture"


# The largest bias that an inverse in doubles may have.
_BIAS = 1e-8


@dataclass(frozen=True, eq=False)
class DecoderVariance:
    """The variance of c_j(Y) for a subject with value k."""

    #: The variance where j is k: one number, or one per value.
    true: Floats
    #: The variance where j is not k: one number, or a row per j and a column per k.
    other: Floats
    #: A further part of ``other`` that all responses to one query share.
    shared: float = 0.0

    @cached_property
    def typical(self) -> float:
        """One number by which queries are compared."""
        return float(self.true.mean() + self.other.mean()) + self.shared


@dataclass(frozen=True, slots=True)
class IndicatorDecoder:
    r"""A decoder that counts a response for the values in its set A_y, and against all others.

    .. math:: c_j(y) = \frac{1[j \in A_y] - q}{p - q}

    p is the probability that a response speaks for the true value, and q that it speaks for a
    given other one. If a random seed merges values, q is the average over seeds.
    """

    likelihood: Pairwise
    inside_weight: Fraction
    outside_weight: Fraction
    variance: DecoderVariance

    def decode(self, position: int) -> Floats:
        """Return the numbers c_j of one response, for all values."""
        spoken = self.likelihood.supported_values(position)
        return np.where(spoken, float(self.inside_weight), float(self.outside_weight))

    def exact_intervals(
        self, frequencies: Floats, subjects: int, confidence: float
    ) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the frequencies that an exact test does not reject, if subjects respond once.

        The third array says where any frequency fits; elsewhere the interval is all of [0, 1].
        """
        outside, span = float(self.outside_weight), float(self.inside_weight - self.outside_weight)
        counts = np.rint((frequencies - outside) / span * subjects).astype(int)
        rates_by_count = {
            count: binomial_interval(count, subjects, 1 - confidence)
            for count in set(counts.tolist())
        }
        rates = np.array([rates_by_count[count] for count in counts.tolist()])
        ends = outside + span * rates
        consistent = (ends[:, 0] <= 1) & (ends[:, 1] >= 0)
        lower = np.where(consistent, np.clip(ends[:, 0], 0.0, 1.0), 0.0)
        upper = np.where(consistent, np.clip(ends[:, 1], 0.0, 1.0), 1.0)
        return lower, upper, consistent


@lru_cache(maxsize=256)
def _indicator_weights(
    true_rate: Fraction, other_rate: Fraction, merging: Fraction
) -> tuple[Fraction, Fraction, DecoderVariance]:
    mean_other_rate = other_rate + merging * (true_rate - other_rate)
    gain = true_rate - mean_other_rate
    drift = merging * (1 - merging) * (true_rate - other_rate) ** 2
    noise = DecoderVariance(
        np.array(float(true_rate * (1 - true_rate) / gain**2)),
        np.array(float((mean_other_rate * (1 - mean_other_rate) - drift) / gain**2)),
        float(drift / gain**2),
    )
    return (1 - mean_other_rate) / gain, -mean_other_rate / gain, noise


@dataclass(frozen=True, slots=True)
class InverseDecoder:
    """A decoder with numbers for every response: a left inverse of the channel, by least squares.

    Among all left inverses it has the least variance if all values are equally frequent.
    """

    #: A row per value, a column per response.
    matrix: Floats
    variance: DecoderVariance

    def decode(self, position: int) -> Floats:
        """Return the numbers c_j of one response, for all values."""
        return np.asarray(self.matrix[:, position])


Decoder = IndicatorDecoder | InverseDecoder


def decoder_for(likelihood: FiniteLikelihood) -> Decoder:
    """Return the decoder of a query on a domain.

    Raises:
        InvalidInput: If one response does not tell all values apart.
    """
    if isinstance(likelihood, LiftedLikelihood) and not likelihood.sees_all:
        observed_domain = likelihood.original.domain
        subject = f"{len(observed_domain)} classes of values"
        if isinstance(observed_domain, Part):
            subject = f"{', '.join(observed_domain.about)} alone"
        raise InvalidInput(f"is about {subject}; {LIKELIHOOD_HINT}")
    if not isinstance(likelihood, Pairwise) or likelihood.support_probabilities is None:
        return _inverse(likelihood)
    rates = (*likelihood.support_probabilities, likelihood.collision_probability)
    try:
        return IndicatorDecoder(likelihood, *_indicator_weights(*rates))
    except OverflowError:
        raise InvalidInput("is too small for an estimate in doubles", "epsilon") from None


def _inverse(likelihood: FiniteLikelihood) -> InverseDecoder:
    values, count = len(likelihood.domain), len(likelihood.responses)
    reason = f"cannot be told apart by one response; {LIKELIHOOD_HINT}"
    if count < values:
        raise InvalidInput(f"has {count} responses: {values} values {reason}")
    if count * values > LARGEST_TABLE:
        raise InvalidInput(
            f"got {count:,} responses on {values:,} values; expected at most {LARGEST_TABLE:,} "
            f"pairs of them; {LIKELIHOOD_HINT}"
        )
    channel = response_probabilities(likelihood)
    scale = 1 / np.sqrt(channel.mean(axis=0))
    inverse: Floats = np.linalg.pinv((channel * scale).T) * scale
    bias = np.abs(inverse @ channel.T - np.eye(values)).max()
    if not bias < _BIAS:
        raise InvalidInput(f"some values {reason}")
    variance = np.maximum(inverse**2 @ channel.T - np.eye(values), 0.0)
    true = variance.diagonal().copy()
    np.fill_diagonal(variance, 0.0)
    return InverseDecoder(inverse, DecoderVariance(true, variance))
