"""The maximum-likelihood distribution of a group over a finite domain.

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

from expost._format import format_count
from expost._types import Floats
from expost.answers import views_of
from expost.cards import View
from expost.domains import Domain, FiniteSet
from expost.errors import InvalidInput, at
from expost.estimation.answers import Used, as_answers, filter_of
from expost.estimation.around import Intervals
from expost.estimation.bootstrap import FEWEST, resampled
from expost.estimation.hidden import observations_of_views
from expost.estimation.likely import by_likelihood
from expost.estimation.mixture import STEPS, Mixture, likeliest_mixture
from expost.estimation.observations import observations_of
from expost.estimation.scope import Scope, scope_of
from expost.estimation.values import value_cells, value_columns, value_heads
from expost.files.canonical import plain
from expost.files.frames import Table
from expost.files.reading import double, each, whole
from expost.numbers import ExactLike, read_confidence

__all__ = ["Distribution", "estimate_distribution"]


GAP = 1e-6

_NUMBERS = ("probability", "identified")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distribution(Table):
    """An estimated distribution over the values of the domain, and how good the estimate is.

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
    probabilities: Floats
    """One per value, in the order of the domain."""
    gap: float
    """No distribution has a log-likelihood that is higher by more than this, in nats."""
    steps: int
    used: Used
    """How many responses it is made from, and what it assumes."""
    identified: NDArray[np.bool_]
    """Whether the responses determine the probability of a value at all.

    Where they do not, other distributions fit exactly as well.
    """
    alike: NDArray[np.intp]
    """A group number per value: values with the same one make every given response as likely.

    Only the sum of their probabilities is estimated; each of them gets an equal share of it.
    """
    model: str | None
    """What was estimated together, and then summed up; None if it is just the values."""
    _mixture: Mixture = field(repr=False)
    _where: NDArray[np.intp] = field(repr=False)
    """For each of what was mixed the place of its value."""

    @property
    def subjects(self) -> int:
        """How many subjects gave the responses."""
        return self.used.subjects

    def _view(self) -> View:
        size = len(self.domain)
        return View(
            f"Distribution({size:,} values, {format_count(self.subjects, 'subject')})",
            {
                "gap": f"{self.gap:.1e} nats at most",
                "intervals": "from .intervals()",
                **({} if self.model is None else {"model": self.model}),
                **self.used.facts(),
            },
            (*value_heads(self.domain, _NUMBERS), *_NUMBERS),
            size,
            lambda place: (
                *value_cells(self.domain, place),
                f"{self.probabilities[place]:.4f}",
                "yes" if self.identified[place] else "no",
            ),
        )

    def columns(self) -> dict[str, Any]:
        """The columns of a table; ``to_polars`` and ``to_pandas`` make frames of them.

        Values with several coordinates or attributes have a column for each. Those of
        :meth:`intervals` also have the ends of intervals.
        """
        numbers = dict(zip(_NUMBERS, (self.probabilities, self.identified), strict=True))
        return {**value_columns(self.domain, numbers), **numbers}

    def tree(self) -> dict[str, Any]:
        """The estimate as JSON, with its columns as lists."""
        columns = {
            "value": list(self.domain.values),
            "probability": self.probabilities.tolist(),
            "identified": self.identified.tolist(),
        }
        whole = {"alike": self.alike.tolist(), "gap": self.gap, **self.used.tree()}
        return plain({**columns, **whole})

    def mean(self, scores: Any) -> float:
        """The mean of a score. ``scores`` has one per value, in the order of the domain."""
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
        """Intervals for all probabilities, or for the mean of a score.

        They have every number that is likely enough, by the ratio of likelihoods with Student's
        quantile. Where probabilities are near zero they are wider than that, to hold their level
        (docs/theory/estimates.md). Of what the responses do not determine, they have all that
        fits as well.

        With ``repetitions`` they come from the bootstrap instead: subjects are resampled with
        replacement so many times, by the ``seed``, and the distribution is estimated anew. These
        are too narrow with few subjects and where an estimate is at an end of what is possible,
        of which it warns. ``progress`` is called with how much is done, and of how much.
        """
        level = float(read_confidence(confidence))
        wanted = np.eye(len(self.domain)) if scores is None else self._scores(scores)[:, None]
        wanted, domain = wanted[self._where], self.domain if scores is None else None
        with at("seed"):
            generator = np.random.default_rng(whole(seed, at_least=0))
        if repetitions is None:
            return by_likelihood(self._mixture, wanted, level, domain, self.used, progress)
        with at("repetitions"):
            repetitions = whole(repetitions, at_least=FEWEST)
        result = resampled(
            self._mixture, wanted, level, domain, self.used,
            repetitions=repetitions, generator=generator, progress=progress,
        )  # fmt: skip
        for doubt in result.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        return result

    def _scores(self, scores: Any) -> Floats:
        result = np.array(each(scores, double, "scores"))
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
    gap: float = GAP,
    steps: int = STEPS,
    progress: Callable[[int, float], None] | None = None,
) -> Distribution:
    r"""Estimate how the values of a group are distributed, by maximum likelihood.

    .. math:: \max_p \sum_i \log \sum_x p(x) \prod_r P[Q_{ir}(x) = y_{ir}]

    Subject i gave the response y_ir to query Q_ir. Subjects may have been asked different queries,
    any number of times, adaptively and under a filter.

    ``answers`` are :class:`Answers`; or pairs of a query and a response, each from a different
    subject, together with their ``domain``. On :class:`Attributes` say which of them it is
    ``about``, one or some together, and ``at`` which step if one of them changes. All attributes
    that were asked about are estimated together, for under a filter who was asked what depends on
    the answers about all of them; what is returned is the distribution of those that are named. Of
    an attribute whose changes are limited that is the value which devices answer for, which no
    longer changes once the limit is reached. At most 1,500 combinations can be estimated.

    On a :class:`Box` it is the likeliest mixture of the points of a ``support``: rows, or
    :class:`~expost.knowledge.Samples`, given or drawn; :func:`beyond_support` says what other
    points would change.

    If somebody else's responses are hidden, ``attempts`` is a table of all attempts to ask, in
    their order, with the columns ``subject``, ``query`` and ``outcome``: *answered*, *hidden* or
    *refused*. The answers name the filter. Then all that may have been responded in secret is
    summed over. That takes what was asked not to depend on what is hidden, except through the
    filter.

    The search ends when the log-likelihood is within
    ``gap`` nats of the maximum, or after ``steps`` steps. ``progress`` is called at every step
    with the number of steps taken and the smallest gap so far.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"])).probabilities.round(3)
    array([0.763, 0.237])
    """
    gap, steps = _limits(gap, steps)
    if attempts is None:
        answers = as_answers(answers, domain, likeliest=True)
        scope = scope_of(answers, about, at, support)
        observed = observations_of(answers, scope.atoms)
        used = Used.of(answers, len(answers), len(answers.codes), None, likeliest=True)
    else:
        guard = filter_of(answers)
        views = views_of(answers, attempts)
        scope = scope_of(answers, about, at, support)
        observed = observations_of_views(answers, views, guard, scope.atoms)
        used = Used.of_views(answers, views)
    asked = dict.fromkeys(key for key, _ in answers.given)
    seen = [scope.atoms.seen(answers.queries[key]) for key in asked]
    mixture = likeliest_mixture(observed, seen, gap=gap, steps=steps, progress=progress)
    return _distribution(scope, mixture, used)


def _limits(gap: Any, steps: Any) -> tuple[float, int]:
    with at("gap"):
        gap = double(gap)
        if not gap > 0:
            raise InvalidInput("must be above 0")
    with at("steps"):
        return gap, whole(steps, at_least=1)


def _distribution(scope: Scope, mixture: Mixture, used: Used) -> Distribution:
    """What a mixture of atoms says about values."""
    size = len(scope.domain)
    probabilities = np.zeros(size)
    np.add.at(probabilities, scope.where, mixture.probabilities)
    identified = ~mixture.unknown(np.eye(size)[scope.where])
    alike = scope.alike(mixture.observed.alike)
    for array in (probabilities, identified, alike, scope.where):
        array.setflags(write=False)
    return Distribution(
        scope.domain,
        probabilities,
        mixture.found.gap,
        mixture.found.steps,
        used,
        identified,
        alike,
        scope.model,
        mixture,
        scope.where,
    )
