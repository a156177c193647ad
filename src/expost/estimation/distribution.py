"""The maximum-likelihood distribution of a group over a finite domain, or over points of a box.

Whether a filter accepts a query depends on the transcript alone, so it drops out of the
likelihood: unlike means, this estimate stays valid under a filter. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost._format import format_count, format_fixed
from expost._types import Floats
from expost.answers import Answers, views_of
from expost.cards import View
from expost.domains import Domain, FiniteSet
from expost.errors import InvalidInput, at, expect, read_at
from expost.estimation._intervals import (
    LEAST_REPETITIONS,
    Intervals,
    bootstrap_intervals,
    value_cells,
    value_columns,
    value_heads,
)
from expost.estimation._mle import (
    STEPS,
    EstimatedMixture,
    estimate_mixture,
    likelihood_gradient,
    log_upper_bound,
)
from expost.estimation._observations import observe_answers
from expost.estimation._partial_views import observe_views
from expost.estimation._profile_likelihood import likelihood_ratio_intervals
from expost.estimation._support import Estimand, Points, PointSupport, read_estimand, read_support
from expost.estimation._validity import Provenance, read_answers, required_filter
from expost.estimation._weights import read_weights
from expost.files.canonical import plain_tree
from expost.files.reading import double, read_integer, read_list
from expost.files.tables import ResultTable
from expost.knowledge import Samples
from expost.numbers import ExactLike, read_confidence, read_only

__all__ = ["BeyondSupport", "Distribution", "beyond_support", "estimate_distribution"]


GAP = 1e-6

_ESTIMATES = ("probability", "identified")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distribution(ResultTable):
    """An estimated distribution over the values of a domain, and the quality of the estimate.

    :func:`estimate_distribution` returns it.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> found = estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"]))
    >>> round(found.mean([0, 1]), 3), found.identified.tolist()
    (0.237, [True, True])
    """

    domain: FiniteSet
    #: One per value, in the order of the domain.
    probabilities: Floats
    #: No distribution has a log-likelihood that is higher by more than this, in nats.
    gap: float
    steps: int
    #: The data it was made from, and its assumptions.
    provenance: Provenance
    #: Whether the responses determine the probability of a value at all.
    #:
    #: Where they do not, other distributions fit exactly as well.
    identified: NDArray[np.bool_]
    #: A group number per value; values of one group have equal likelihoods for all responses.
    #:
    #: Only the sum of their probabilities is estimated; each gets an equal share of it.
    alike: NDArray[np.intp]
    #: A description of the finer support on which it was estimated; None if there is none.
    model: str | None
    #: Whether subjects have survey weights.
    weighted: bool
    _mixture: EstimatedMixture = field(repr=False)
    #: The index of the value that each point of the support belongs to.
    _value_index: NDArray[np.intp] = field(repr=False)

    @property
    def subjects(self) -> int:
        """How many subjects gave the responses."""
        return self.provenance.subjects

    @property
    def effective_sample_size(self) -> float:
        """How many subjects of equal weight count as much as these, by Kish."""
        return float(self._mixture.observations.counts.sum())

    def _view(self) -> View:
        size, effective = len(self.domain), format_fixed(self.effective_sample_size, 0)
        return View(
            f"Distribution({size:,} values, {format_count(self.subjects, 'subject')})",
            {
                "gap": f"{self.gap:.1e} nats at most",
                "intervals": "from .intervals()",
                **({} if self.model is None else {"model": self.model}),
                **({"effective sample size": effective} if self.weighted else {}),
                **self.provenance.facts(),
            },
            (*value_heads(self.domain, _ESTIMATES), *_ESTIMATES),
            size,
            lambda index: (
                *value_cells(self.domain, index),
                format_fixed(self.probabilities[index], 4),
                "yes" if self.identified[index] else "no",
            ),
        )

    def columns(self) -> dict[str, Any]:
        """Return the columns of a table; ``to_polars`` and ``to_pandas`` make frames of them.

        Values with several coordinates or attributes have a column for each. Those of
        :meth:`intervals` also have the ends of intervals.
        """
        estimates = dict(zip(_ESTIMATES, (self.probabilities, self.identified), strict=True))
        return {**value_columns(self.domain, estimates), **estimates}

    def tree(self) -> dict[str, Any]:
        """Return the estimate as JSON, with its columns as lists."""
        columns = {
            "value": list(self.domain.values),
            "probability": self.probabilities.tolist(),
            "identified": self.identified.tolist(),
        }
        quality = {"alike": self.alike.tolist(), "gap": self.gap, **self.provenance.tree()}
        return plain_tree({**columns, **quality})

    def mean(self, scores: Any) -> float:
        """Estimate the mean of a score; ``scores`` has one per value, in their order."""
        return float(self.probabilities @ self._scores(scores))

    def intervals(
        self,
        scores: Any = None,
        *,
        confidence: ExactLike = "0.95",
        repetitions: int | None = None,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Intervals:
        """Compute intervals for all probabilities, or for the mean of a score.

        They are likelihood-ratio intervals with Student's quantile. Where probabilities are near
        zero they are wider than that, to hold their level (docs/theory/estimates.md). What the
        responses do not determine gets every number that fits as well.

        Args:
            scores: One score per value, in the order of the domain, for its mean.
            confidence: The level of the intervals.
            repetitions: The number of bootstrap samples. Bootstrap intervals are too narrow with
                few subjects, and where an estimate is at an end of its range; a warning says so.
            seed: The seed of the bootstrap.
            progress: A function that is called with the amount of work done, and the total.
        """
        confidence_level = float(read_confidence(confidence))
        domain = self.domain if scores is None else None
        columns = np.eye(len(self.domain)) if scores is None else self._scores(scores)[:, None]
        score_columns = columns[self._value_index]
        generator = np.random.default_rng(read_at("seed", read_integer, seed, at_least=0))
        if repetitions is None:
            return likelihood_ratio_intervals(
                self._mixture, score_columns, self._value_index, confidence_level, domain,
                self.provenance, progress,
            )  # fmt: skip
        with at("repetitions"):
            repetitions = read_integer(repetitions, at_least=LEAST_REPETITIONS)
        result = bootstrap_intervals(
            self._mixture, score_columns, confidence_level, domain, self.provenance,
            repetitions=repetitions, generator=generator, progress=progress,
        )  # fmt: skip
        for doubt in result.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        return result

    def _scores(self, scores: Any) -> Floats:
        result = np.array(read_list(scores, double, "scores"))
        if len(result) != len(self.domain):
            raise InvalidInput(
                f"needs {len(self.domain)}, one per value, not {len(result)}", "scores"
            )
        return result


def estimate_distribution(
    answers: Any,
    *,
    domain: Domain | None = None,
    about: Any = None,
    at: int | None = None,
    support: Any = None,
    attempts: Any = None,
    weights: Any = None,
    gap: float = GAP,
    steps: int = STEPS,
    progress: Callable[[int, float], None] | None = None,
) -> Distribution:
    r"""Estimate how the values of a group are distributed, by maximum likelihood.

    .. math:: \max_p \sum_i \log \sum_x p(x) \prod_r P[Q_{ir}(x) = y_{ir}]

    Subject i gave the response y_ir to query Q_ir. Subjects may have been asked different queries,
    any number of times, adaptively and under a filter.

    Args:
        answers: :class:`Answers`; or pairs of a query and a response, each from a different
            subject.
        domain: The domain of pairs; :class:`Answers` have one.
        about: One or more :class:`Attributes`, which are required on such a domain. All attributes
            that queries were about are estimated together, because under a filter the answers
            about all of them decide who is asked what. The result is the distribution of the named
            ones. If the changes of an attribute are limited, it is that of the values which devices
            answer for; they no longer change once the limit is reached.
        at: The step, if one of these attributes changes.
        support: Points of a :class:`Box`, as rows or :class:`~expost.knowledge.Samples`, given or
            drawn. The result is the maximum-likelihood mixture of these points;
            :func:`beyond_support` reports what other points would change.
        attempts: A table of all attempts to ask, in their order, if responses to other analysts
            are hidden. Its columns are ``subject``, ``query`` and ``outcome``: *answered*, *hidden*
            or *refused*. The answers must name the filter. The likelihood is then summed over all
            possible hidden responses. This assumes that what was asked depended on hidden
            responses only through the filter.
        weights: Survey weights by the names of the subjects: positive numbers. Subjects count in
            proportion to them, and all together as Kish's effective sample size.
        gap: The search ends when the log-likelihood is within so many nats of the maximum.
        steps: The largest number of steps of the search.
        progress: A function that is called at every step, with the number of steps and the
            smallest gap so far.

    Returns:
        The distribution, with its gap, and intervals on request.

    Raises:
        InvalidInput: If more than 1,500 values or combinations would have to be estimated.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"])).probabilities.round(3)
    array([0.763, 0.237])
    """
    gap, steps = _limits(gap, steps)
    if attempts is None:
        answers = read_answers(answers, domain, by_likelihood=True)
        estimand = read_estimand(answers, about, at, support)
        scaled_weights = None if weights is None else read_weights(answers, weights)
        observations = observe_answers(answers, estimand.support, scaled_weights)
        provenance = Provenance.of(
            answers, len(answers), len(answers.codes), None, by_likelihood=True
        )
    elif weights is not None:
        raise InvalidInput("cannot be combined with attempts; leave one of them out", "weights")
    else:
        filter_ = required_filter(answers)
        views = views_of(answers, attempts)
        estimand = read_estimand(answers, about, at, support)
        observations = observe_views(answers, views, filter_, estimand.support)
        provenance = Provenance.of_views(answers, views)
    query_ids = dict.fromkeys(key for key, _ in answers.responses)
    query_likelihoods = [estimand.support.likelihoods(answers.queries[key]) for key in query_ids]
    mixture = estimate_mixture(
        observations, query_likelihoods, gap=gap, steps=steps, progress=progress
    )
    return _distribution(estimand, mixture, provenance, weighted=weights is not None)


def _limits(gap: Any, steps: Any) -> tuple[float, int]:
    with at("gap"):
        gap = double(gap)
        if not gap > 0:
            raise InvalidInput(f"must be above 0, not {gap}")
    with at("steps"):
        return gap, read_integer(steps, at_least=1)


def _distribution(
    estimand: Estimand,
    mixture: EstimatedMixture,
    provenance: Provenance,
    *,
    weighted: bool = False,
) -> Distribution:
    """Sum the probabilities of a mixture by value."""
    value_count = len(estimand.domain)
    probabilities = np.zeros(value_count)
    np.add.at(probabilities, estimand.value_index, mixture.probabilities)
    identified = ~mixture.unidentified(np.eye(value_count)[estimand.value_index])
    groups = estimand.value_groups(mixture.observations.groups)
    read_only(probabilities, identified, groups, estimand.value_index)
    return Distribution(
        estimand.domain, probabilities, mixture.fit.gap, mixture.fit.steps, provenance, identified,
        groups, estimand.model, weighted, mixture, estimand.value_index,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class BeyondSupport:
    """The dependence of an estimate on the points of its support."""

    #: With the other points too, the log-likelihood is higher by at most this, in nats.
    gain: float
    #: The point that the likelihood increases most towards.
    point: tuple[Any, ...]
    #: The estimate on all of these points.
    wider: Distribution


def beyond_support(answers: Answers, estimate: Distribution, points: Any) -> BeyondSupport:
    r"""Bound what other points would change in an estimate on a support.

    .. math:: n \log \max_x \frac1n \sum_i \frac{L_i(x)}{\sum_j L_{ij}\, p_j}

    over all points x, those of the support and the others, bounds how much higher the
    log-likelihood is on all of them. If that is a fraction of a nat, points like these change
    nothing that the answers could show. Compare the means of both estimates.

    Args:
        answers: The answers that the estimate was made from.
        estimate: An estimate on points of a box.
        points: Other points of the box, as rows or :class:`~expost.knowledge.Samples`.

    >>> import expost as xp
    >>> from expost.estimation import estimate_distribution
    >>> person = xp.Box(age=(0, 100))
    >>> ill = xp.logistic({"age": 0.1}, intercept=-5, epsilon=2)
    >>> pairs = [(ill, 1)] * 30 + [(ill, 0)] * 70
    >>> found = estimate_distribution(pairs, domain=person, support=[[20], [50], [80]])
    >>> beyond = beyond_support(xp.Answers.of_pairs(person, pairs), found, [[10], [95]])
    >>> beyond.gain < 1e-4
    True
    """
    expect(answers, Answers, "Answers")
    if not isinstance(estimate.domain, Points) or estimate.domain.samples.box != answers.domain:
        raise InvalidInput("must be an estimate on a support of the box of the answers", "estimate")
    samples = estimate.domain.samples
    other_samples = read_support(points, samples.box)
    all_samples = Samples(samples.box, [*samples.points, *other_samples.points])
    observations = observe_answers(answers, PointSupport(all_samples))
    table, counts, groups = observations.table, observations.counts, observations.groups
    total = float(counts.sum())
    weights = np.bincount(groups[: len(samples)], estimate.probabilities, table.shape[1])
    gradient = likelihood_gradient(table, counts / total / (table @ weights))
    best_index = len(samples) + int(np.argmax(gradient[groups[len(samples) :]]))
    gain = total * log_upper_bound(float(gradient.max()), table.shape)
    wider = estimate_distribution(answers, support=all_samples)
    return BeyondSupport(gain, all_samples.points[best_index], wider)
