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

from expost.answers import Answers
from expost.cards import View, count
from expost.domains import FiniteSet
from expost.errors import InvalidInput, at
from expost.estimation.answers import Used, as_answers, finite
from expost.estimation.bootstrap import FEWEST, Intervals, intervals_of, usual_repetitions
from expost.estimation.likeliest import curvature, likeliest
from expost.estimation.values import value_cells, value_columns, value_heads
from expost.files.canonical import plain
from expost.files.frames import Table
from expost.files.reading import double, each, whole
from expost.numbers import ExactLike, read_confidence
from expost.queries import FiniteLikelihood
from expost.queries.lifted import Lifted
from expost.queries.values.pairwise import Pairwise

__all__ = ["Distribution", "estimate_distribution"]

Floats = NDArray[np.float64]

GAP = 1e-6
STEPS = 1000

# A table of all patterns and values takes up to half a gibibyte.
_LARGEST_TABLE = 1 << 26
# What is identified is worked out from a square matrix of this size.
_MOST_VALUES = 1_500
_BLOCK = 1 << 20

# A direction in which the likelihood has less relative curvature than this is not identified.
_FLAT = 1e-10
_OUTSIDE = 1e-6
_MOST_POSSIBLE = 1000
_TELLING = 1e-4

# A search from the inside leaves less than this where the true maximum is zero.
_DUST = 1e-6

_NUMBERS = ("probability", "identified")

# A replicate with this gap, in nats, is off by a few hundredths of a standard error.
_ROUGH = 1e-3

# Products in one step of the search.
_MOST_PRODUCTS = 1_500_000_000


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
    _table: Floats = field(repr=False)
    """A row per pattern of responses, a column per group of ``alike``."""
    _counts: Floats = field(repr=False)
    _basis: Floats = field(repr=False)
    """Orthonormal columns: the responses determine exactly the combinations of these."""

    @property
    def subjects(self) -> int:
        """How many subjects gave the responses."""
        return self.used.subjects

    def _view(self) -> View:
        size = len(self.domain)
        return View(
            f"Distribution({size:,} values, {count(self.subjects, 'subject')})",
            {
                "gap": f"{self.gap:.1e} nats at most",
                "intervals": "by bootstrap, from .intervals()",
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
        """Bootstrap intervals for all probabilities, or for the mean of a score.

        Subjects are resampled with replacement and the distribution is estimated anew,
        ``repetitions`` times. By default that is 1,000 times, or fewer where there are very many
        kinds of responses or values, but not below 50. The ``seed`` makes it reproducible. What
        the responses do not determine at all gets the widest possible interval. It warns where an
        estimate is at an end of what is possible: the interval is too narrow there. ``progress``
        is called with the number of repetitions done and their total.
        """
        level = float(read_confidence(confidence))
        with at("repetitions"):
            if repetitions is None:
                repetitions = usual_repetitions(*self._table.shape)
            repetitions = whole(repetitions, at_least=FEWEST)
        with at("seed"):
            generator = np.random.default_rng(whole(seed, at_least=0))
        wanted = np.eye(len(self.domain)) if scores is None else self._scores(scores)[:, None]
        told = progress or (lambda done, total: None)
        found = np.empty((repetitions, wanted.shape[1]))
        for repetition in range(repetitions):
            found[repetition] = self._replicate(generator) @ wanted
            told(repetition + 1, repetitions)
        result = intervals_of(
            found,
            self.probabilities @ wanted,
            (wanted.min(axis=0), wanted.max(axis=0)),
            _outside(self._basis, wanted),
            level,
            self.domain if scores is None else None,
            self.used,
        )
        for doubt in result.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        return result

    def _replicate(self, generator: np.random.Generator) -> Floats:
        counts = generator.multinomial(self.subjects, self._counts / self.subjects)
        seen = counts > 0
        sums = np.bincount(self.alike, self.probabilities)
        # Away from the edge, so that every value can get a positive probability again.
        start = np.asarray(0.99 * sums + 0.01 / len(sums), dtype=np.float64)
        drawn = counts[seen].astype(np.float64)
        found = likeliest(self._table[seen], drawn, gap=_ROUGH, steps=STEPS, start=start)
        return _shared(found.weights, self.alike)

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
    domain: FiniteSet | None = None,
    gap: float = GAP,
    steps: int = STEPS,
    progress: Callable[[int, float], None] | None = None,
) -> Distribution:
    r"""Estimate how the values of a group are distributed, by maximum likelihood.

    .. math:: \max_p \sum_i \log \sum_x p(x) \prod_r P[Q_{ir}(x) = y_{ir}]

    Subject i gave the response y_ir to query Q_ir. Subjects may have been asked different queries,
    any number of times, adaptively and under a filter.

    ``answers`` are :class:`Answers`; or pairs of a query and a response, each from a different
    subject, together with their ``domain``. The search ends when the log-likelihood is within
    ``gap`` nats of the maximum, or after ``steps`` steps. ``progress`` is called at every step
    with the number of steps taken and the smallest gap so far.

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
    answers = as_answers(answers, domain, likeliest=True)
    values = finite(answers)
    table, counts, alike = _likelihoods(answers, values)
    found = likeliest(table, counts, gap=gap, steps=steps, progress=progress)
    basis = _basis(answers, values, table, counts, alike, found.weights)
    probabilities = _shared(found.weights, alike)
    identified = ~_outside(basis, np.eye(len(values)))
    for array in (probabilities, identified, alike, table, counts, basis):
        array.setflags(write=False)
    return Distribution(
        values,
        probabilities,
        found.gap,
        found.steps,
        Used.of(answers, len(answers), len(answers.codes), None, likeliest=True),
        identified,
        alike,
        table,
        counts,
        basis,
    )


def _shared(sums: Floats, alike: NDArray[np.intp]) -> Floats:
    """The sum of each group of ``alike``, in equal shares for its values."""
    return np.asarray((sums / np.bincount(alike))[alike])


def _likelihoods(answers: Answers, domain: FiniteSet) -> tuple[Floats, Floats, NDArray[np.intp]]:
    """Likelihoods by pattern of responses, how many subjects gave each, and the groups of values.

    The largest entry of a row is one. Values that make each of the responses equally likely are
    a group, and share a column.
    """
    if len(domain) > _MOST_VALUES:
        reason = (
            f"there are {len(domain):,} values; at most {_MOST_VALUES:,} can be estimated together"
        )
        raise InvalidInput(reason, "domain")
    counts, patterns = _patterns(answers)
    rows = max(len(patterns), len(answers.given))
    if rows * len(domain) > _LARGEST_TABLE:
        raise InvalidInput(f"{rows:,} kinds of responses for {len(domain):,} values are too many")
    logs = np.array([_logs(answers.queries[key].on(domain), y) for key, y in answers.given])
    columns: dict[bytes, int] = {}
    alike = np.array([columns.setdefault(each.tobytes(), len(columns)) for each in logs.T + 0.0])
    if len(patterns) * (len(columns) + 20) ** 2 > _MOST_PRODUCTS:
        raise InvalidInput(
            f"{len(patterns):,} kinds of responses for {len(columns):,} values are too many to "
            "estimate by likelihood; fewer values, or frequencies, take less"
        )
    logs = logs[:, np.unique(alike, return_index=True)[1]]
    lengths = np.array([len(codes) for codes in patterns])
    ends = np.cumsum(lengths)
    table = np.empty((len(patterns), len(columns)))
    size = max(1, _BLOCK // (len(columns) * int(lengths.max())))
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
    return table, counts, alike


def _patterns(answers: Answers) -> tuple[Floats, list[NDArray[np.intp]]]:
    """How many subjects gave each pattern of responses, and the patterns.

    They are in an order of their own, by what was asked and answered, so that a seed draws the same
    subjects whether a table or a folder had them, and in whatever order.
    """
    pattern_of, patterns = answers.patterns()
    contents = {key: answers.queries[key].content_id for key in {key for key, _ in answers.given}}
    given = [(contents[key], position) for key, position in answers.given]
    rank = np.empty(len(given), dtype=">i8")  # big-endian: bytes are in the order of numbers
    rank[sorted(range(len(given)), key=given.__getitem__)] = np.arange(len(given))
    keys = [np.sort(rank[codes]).tobytes() for codes in patterns]
    order = sorted(range(len(patterns)), key=keys.__getitem__)
    counts = np.bincount(pattern_of)[order].astype(np.float64)
    return counts, [patterns[place] for place in order]


def _logs(likelihood: FiniteLikelihood, position: int) -> Floats:
    """The log-likelihood of one response at every value, up to a constant."""
    if isinstance(likelihood, Pairwise):
        # The same as its term, without exact weights for each of very many responses.
        return np.where(likelihood.speaks_for(position), likelihood.epsilon.nearest, 0.0)
    return likelihood.term(position).logs


def _basis(
    answers: Answers,
    domain: FiniteSet,
    table: Floats,
    counts: Floats,
    alike: NDArray[np.intp],
    sums: Floats,
) -> Floats:
    """What the responses determine: an orthonormal basis of the rows and of the sum, which is one.

    Responses that nobody gave count too, because their absence is informative. But it does not
    say how the probability of a group of alike values is shared among them.
    """
    size = len(domain)
    together = _together(alike, sums)
    possible: list[Floats] = []
    for key in dict.fromkeys(key for key, _ in answers.given):
        likelihood, where = _seen(answers.queries[key].on(domain))
        if isinstance(likelihood, Pairwise) and likelihood.chances and not likelihood.merging:
            # There may be astronomically many responses, which together tell all values apart.
            if likelihood.epsilon.nearest > _TELLING:
                if len(likelihood.domain) == size:
                    return together
                possible += list(np.eye(len(likelihood.domain))[:, where])
            continue
        room = _MOST_POSSIBLE - len(possible)
        possible += [
            np.exp(_logs(likelihood, y))[where] for y in range(min(room, len(likelihood.responses)))
        ]
    curved = np.ones((size, size)) + _curvature(table, counts)[np.ix_(alike, alike)]
    if possible:
        curved += _curvature((np.array(possible) @ together) @ together.T, np.ones(len(possible)))
    sizes, directions = np.linalg.eigh(curved)
    return np.asarray(directions[:, sizes > _FLAT * sizes[-1]])


def _seen(likelihood: FiniteLikelihood) -> tuple[FiniteLikelihood, Any]:
    """What a query sees of the values, and where each of them is in that."""
    if isinstance(likelihood, Lifted):
        return likelihood.seen, likelihood.where
    return likelihood, slice(None)


def _curvature(rows: Floats, times: Floats) -> Floats:
    return curvature(rows, times / times.sum(), rows.mean(axis=1))


def _together(alike: NDArray[np.intp], sums: Floats) -> Floats:
    """An orthonormal basis of what is equal on each group of alike values with positive weight."""
    shared = sums[alike] > _DUST
    labels = np.where(shared, alike, len(sums) + np.arange(len(alike)))
    _, labels = np.unique(labels, return_inverse=True)
    members = np.eye(labels.max() + 1)[labels]
    return np.asarray(members / np.sqrt(members.sum(axis=0)))


def _outside(basis: Floats, wanted: Floats) -> NDArray[np.bool_]:
    """Which columns are not combinations of the basis."""
    rest = wanted - basis @ (basis.T @ wanted)
    lengths = np.linalg.norm(wanted, axis=0)
    return np.asarray(np.linalg.norm(rest, axis=0) > _OUTSIDE * np.where(lengths, lengths, 1.0))
