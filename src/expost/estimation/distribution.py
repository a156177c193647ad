"""The distribution of a group over a finite domain that makes its responses likeliest.

Whether a filter let a query through depends on the transcript alone, and so drops out of the
likelihood: this stays right under a filter, where means do not. Proof: docs/theory/estimates.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expost.answers import Answers
from expost.domains import FiniteSet
from expost.errors import InvalidInput, at
from expost.estimation.given import as_answers, finite
from expost.estimation.intervals import read_confidence
from expost.estimation.mixture import curvature, likeliest
from expost.queries import FiniteLikelihood
from expost.queries.base import Pairwise
from expost.reading import double, each, whole
from expost.rounding import ExactLike

__all__ = ["Distribution", "Intervals", "estimate_distribution"]

Floats = NDArray[np.float64]

GAP = 1e-6
STEPS = 1000

# A table of all patterns and values takes up to a gibibyte.
_LARGEST_TABLE = 1 << 27
_BLOCK = 1 << 20

# Directions in which the likelihood curves less than this, relatively, are not told at all.
_FLAT = 1e-10
_OUTSIDE = 1e-6
_MOST_POSSIBLE = 1000
_TELLING = 1e-4

# A replicate that is this close, in nats, is off by a few hundredths of a standard error.
_ROUGH = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Bootstrap intervals: the middle share of what other samples of subjects might give."""

    lower: Floats
    upper: Floats
    standard_error: Floats
    confidence: float
    repetitions: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Distribution:
    """A distribution over the values of the domain, in their order, and how good it is."""

    domain: FiniteSet
    probabilities: Floats
    gap: float
    """No distribution has a log-likelihood that is higher by more than this, in nats."""
    steps: int
    subjects: int
    identified: NDArray[np.bool_]
    """Whether the responses tell the probability of a value at all.

    Where they do not, other distributions fit exactly as well.
    """
    _table: Floats = field(repr=False)
    _counts: Floats = field(repr=False)
    _basis: Floats = field(repr=False)
    """Orthonormal columns: what the responses tell are the combinations of these."""

    def __repr__(self) -> str:
        size = f"{len(self.domain)} values, {self.subjects:,} subjects"
        return f"Distribution({size}, gap={self.gap:.1e})"

    def columns(self) -> dict[str, Any]:
        """The table by its columns, as ``polars.DataFrame`` and ``pandas.DataFrame`` take it."""
        return {
            "value": list(self.domain.values),
            "probability": self.probabilities,
            "identified": self.identified,
        }

    def mean(self, scores: Any) -> float:
        """The mean of a score that each value has, in the order of the domain."""
        return float(self.probabilities @ self._scores(scores))

    def intervals(
        self,
        scores: Any = None,
        *,
        confidence: ExactLike = "0.95",
        repetitions: int = 1000,
        seed: int = 0,
        progress: Callable[[int, int], None] | None = None,
    ) -> Intervals:
        """Intervals for all probabilities, or for the mean of a score.

        Subjects are drawn again, with replacement, and the distribution is estimated anew, so
        many times. The seed makes it reproducible. What the responses do not tell at all has the
        widest interval there is. ``progress`` is told how many repetitions are done, and how
        many there are.
        """
        level = read_confidence(confidence)
        with at("repetitions"):
            repetitions = whole(repetitions, at_least=2)
        with at("seed"):
            generator = np.random.default_rng(whole(seed, at_least=0))
        wanted = np.eye(len(self.domain)) if scores is None else self._scores(scores)[:, None]
        told = progress or (lambda done, total: None)
        found = np.empty((repetitions, wanted.shape[1]))
        for repetition in range(repetitions):
            found[repetition] = self._replicate(generator) @ wanted
            told(repetition + 1, repetitions)
        tails = (1 - level) / 2
        lower, upper = np.quantile(found, [tails, 1 - tails], axis=0)
        error = found.std(axis=0, ddof=1)
        unknown = _outside(self._basis, wanted)
        lower[unknown], upper[unknown] = wanted.min(axis=0)[unknown], wanted.max(axis=0)[unknown]
        error[unknown] = np.inf
        return Intervals(lower, upper, error, level, repetitions)

    def _replicate(self, generator: np.random.Generator) -> Floats:
        counts = generator.multinomial(self.subjects, self._counts / self.subjects)
        seen = counts > 0
        size = len(self.domain)
        # Away from the edge, so that every value can come back.
        start = 0.99 * self.probabilities + 0.01 / size
        drawn = counts[seen].astype(np.float64)
        return likeliest(self._table[seen], drawn, gap=_ROUGH, steps=STEPS, start=start).weights

    def _scores(self, scores: Any) -> Floats:
        result = np.array(each(scores, double, "scores"))
        if len(result) != len(self.domain):
            raise InvalidInput(f"{len(result)} for {len(self.domain)} values", "scores")
        return result


def estimate_distribution(
    answers: Any,
    *,
    domain: FiniteSet | None = None,
    gap: float = GAP,
    steps: int = STEPS,
) -> Distribution:
    r"""The distribution of the subjects' values that makes all responses likeliest.

    .. math:: \max_p \sum_i \log \sum_x p(x) \prod_r P[Q_{ir}(x) = y_{ir}]

    ``answers`` are :class:`Answers`, or pairs of a query and a response with their ``domain``,
    each of another subject. Subjects may have been asked different queries, any number of
    times, adaptively and under a filter. ``gap`` is how far, in nats, the log-likelihood may be
    from the largest one; ``steps`` limits the work.

    >>> import expost as xp
    >>> query = xp.randomized_response(epsilon=2)
    >>> pairs = [(query, "yes")] * 30 + [(query, "no")] * 70
    >>> estimate_distribution(pairs, domain=xp.FiniteSet(["no", "yes"])).probabilities.round(3)
    array([0.763, 0.237])
    """
    with at("gap"):
        gap = double(gap)
        if not gap > 0:
            raise InvalidInput("must be above 0")
    with at("steps"):
        steps = whole(steps, at_least=1)
    answers = as_answers(answers, domain)
    values = finite(answers)
    table, counts = _likelihoods(answers, values)
    found = likeliest(table, counts, gap=gap, steps=steps)
    basis = _basis(answers, values, table, counts)
    for array in (found.weights, table, counts, basis):
        array.setflags(write=False)
    identified = ~_outside(basis, np.eye(len(values)))
    identified.setflags(write=False)
    return Distribution(
        values,
        found.weights,
        found.gap,
        found.steps,
        len(answers),
        identified,
        table,
        counts,
        basis,
    )


def _likelihoods(answers: Answers, domain: FiniteSet) -> tuple[Floats, Floats]:
    """A row per pattern of responses, of which the largest entry is one; and how many gave it."""
    pattern_of, patterns = answers.patterns()
    rows = max(len(patterns), len(answers.given))
    if rows * len(domain) > _LARGEST_TABLE:
        raise InvalidInput(f"{rows:,} kinds of responses for {len(domain):,} values are too many")
    logs = np.array([_logs(answers.queries[key].on(domain), y) for key, y in answers.given])
    lengths = np.array([len(codes) for codes in patterns])
    ends = np.cumsum(lengths)
    table = np.empty((len(patterns), len(domain)))
    size = max(1, _BLOCK // (len(domain) * int(lengths.max())))
    for first in range(0, len(patterns), size):
        some = slice(first, first + size)
        starts = ends[some] - lengths[some]
        terms = logs.take(np.concatenate(patterns[some]), axis=0)
        table[some] = np.add.reduceat(terms, starts - starts[0], axis=0)
    highest = table.max(axis=1)
    if np.isneginf(highest).any():
        raise InvalidInput("no value could give all that some subjects responded")
    table -= highest[:, None]
    np.exp(table, out=table)
    return table, np.bincount(pattern_of).astype(np.float64)


def _logs(likelihood: FiniteLikelihood, position: int) -> Floats:
    """The logarithms of the likelihood of one response, up to a constant."""
    if isinstance(likelihood, Pairwise):
        # The same as its term, without exact weights for each of very many responses.
        return np.where(likelihood.speaks_for(position), likelihood.epsilon.nearest, 0.0)
    return likelihood.term(position).logs


def _basis(answers: Answers, domain: FiniteSet, table: Floats, counts: Floats) -> Floats:
    """What the responses tell: an orthonormal basis of the rows, and of the sum, which is one.

    Responses that nobody happened to give count too: that they did not come up tells something.
    """
    size = len(domain)
    possible: list[Floats] = []
    for key in dict.fromkeys(key for key, _ in answers.given):
        likelihood = answers.queries[key].on(domain)
        if isinstance(likelihood, Pairwise) and likelihood.chances and not likelihood.merging:
            # It may have astronomically many responses, which together tell all values apart.
            if likelihood.epsilon.nearest > _TELLING:
                return np.eye(size)
            continue
        room = _MOST_POSSIBLE - len(possible)
        possible += [
            np.exp(_logs(likelihood, y)) for y in range(min(room, len(likelihood.responses)))
        ]
    curved = np.ones((size, size))
    kinds = [(table, counts)]
    if possible:
        kinds.append((np.array(possible), np.ones(len(possible))))
    for rows, times in kinds:
        curved += curvature(rows, times / times.sum(), rows.mean(axis=1), np.arange(size))
    sizes, directions = np.linalg.eigh(curved)
    return np.asarray(directions[:, sizes > _FLAT * sizes[-1]])


def _outside(basis: Floats, wanted: Floats) -> NDArray[np.bool_]:
    """Which columns are not combinations of the basis."""
    rest = wanted - basis @ (basis.T @ wanted)
    lengths = np.linalg.norm(wanted, axis=0)
    return np.asarray(np.linalg.norm(rest, axis=0) > _OUTSIDE * np.where(lengths, lengths, 1.0))
