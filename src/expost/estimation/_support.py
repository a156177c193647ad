"""The support of an estimated distribution, and the likelihood of responses at its points.

A distribution is estimated on the values of a finite set, on combinations of attributes, or on
points of a box. On attributes it is estimated together with all others that were asked about,
because under a filter the answers about these decide who is asked what. Proof:
docs/theory/estimates.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from expost._format import format_list
from expost._grouping import group_pairs
from expost._types import Floats, Indices
from expost.answers import Answers
from expost.domains import Attributes, Box, FiniteSet, Part, Variable, join_names
from expost.errors import InvalidInput, expect, read_at
from expost.knowledge import Samples, allowed_histories
from expost.queries import (
    BoxLikelihood,
    FiniteLikelihood,
    LiftedLikelihood,
    Pairwise,
    Query,
    read_about,
)

__all__ = [
    "LARGEST_TABLE",
    "MOST_VALUES",
    "Estimand",
    "MixtureSupport",
    "PointSupport",
    "Points",
    "RecordSupport",
    "ResponseLikelihoods",
    "SetSupport",
    "classwise_likelihoods",
    "point_scores",
    "query_scores",
    "read_estimand",
    "read_support",
    "record_support",
    "response_probabilities",
]


#: Identifiability is computed from a square matrix of this size.
MOST_VALUES = 1_500

# Below this epsilon, responses hardly tell values apart.
_LEAST_EPSILON = 1e-4


@dataclass(frozen=True, slots=True, eq=False)
class ResponseLikelihoods:
    """The likelihoods of the responses of a query at the points of a support."""

    #: The number of possible responses, perhaps astronomically large.
    response_count: int
    #: Return the log-likelihood of a response at every point, up to a constant.
    logs: Callable[[int], Floats]
    #: Return the probability of every response, a row for each, at every point.
    table: Callable[[], Floats]
    #: Rows that separate exactly the points that all responses together do, if known.
    separating: Floats | None = None


class MixtureSupport(Protocol):
    """The values that a distribution gives probabilities to: of a set, of records, of a box."""

    def __len__(self) -> int:
        """Return the number of points."""

    def likelihoods(self, query: Query) -> ResponseLikelihoods:
        """Return the likelihoods of the responses of a query at all points."""


@dataclass(frozen=True, slots=True, eq=False)
class SetSupport:
    """The values of a finite set."""

    domain: FiniteSet

    def __len__(self) -> int:
        return len(self.domain)

    def likelihoods(self, query: Query) -> ResponseLikelihoods:
        likelihood = query.on(self.domain)
        if isinstance(likelihood, LiftedLikelihood):
            return classwise_likelihoods(likelihood.original, likelihood.indices)
        return classwise_likelihoods(likelihood, slice(None))


def classwise_likelihoods(likelihood: FiniteLikelihood, class_of: Any) -> ResponseLikelihoods:
    """Return likelihoods at points that each behave as one value of a set, ``class_of``."""
    separating = None
    if (
        isinstance(likelihood, Pairwise)
        and likelihood.support_probabilities
        and not likelihood.collision_probability
    ):
        separates = likelihood.epsilon.nearest > _LEAST_EPSILON
        separating = np.eye(len(likelihood.domain))[:, class_of][: None if separates else 0]
    return ResponseLikelihoods(
        len(likelihood.responses),
        lambda position: _class_logs(likelihood, position)[class_of],
        lambda: response_probabilities(likelihood).T[:, class_of],
        separating,
    )


def response_probabilities(likelihood: FiniteLikelihood) -> Floats:
    """Compute Pr(response | value): a row per value, a column per response."""
    pmfs = [likelihood.pmf(position) for position in range(len(likelihood.domain))]
    response_count = len(likelihood.responses)
    if isinstance(likelihood, Pairwise):
        # The weights are only known up to a factor that differs between responses.
        rows = [[float(pmf.probability(y)) for y in range(response_count)] for pmf in pmfs]
        return np.array(rows)
    total = pmfs[0].total
    columns = [[int(w) / total for w in likelihood.weights(y)] for y in range(response_count)]
    return np.array(columns).T


def _class_logs(likelihood: FiniteLikelihood, position: int) -> Floats:
    if isinstance(likelihood, Pairwise):
        # Equals its term, without exact weights for each of very many responses.
        return np.where(likelihood.supported_values(position), likelihood.epsilon.nearest, 0.0)
    return likelihood.term(position).logs


@dataclass(frozen=True, slots=True, eq=False)
class RecordSupport:
    """All combinations of some attributes, with all allowed histories of those that change."""

    domain: Attributes
    #: The index of the value of each variable, at every combination.
    indices: Mapping[Variable, Indices]

    def __len__(self) -> int:
        return len(next(iter(self.indices.values())))

    def likelihoods(self, query: Query) -> ResponseLikelihoods:
        likelihood = query.on(self.domain)
        return classwise_likelihoods(likelihood.on_part, self.indices_of(likelihood.variables))

    def indices_of(self, variables: Sequence[Variable]) -> Indices:
        """Return the index of a part of every combination."""
        sizes = [len(self.domain[name].values) for name, _ in variables]
        return np.ravel_multi_index([self.indices[v] for v in variables], sizes).astype(np.intp)

    def description(self) -> str:
        """Name the variables, and count the combinations."""
        return f"{_variables_text(self.domain, self.indices)} together: {len(self):,} combinations"


def record_support(domain: Attributes, variables: Iterable[Variable]) -> RecordSupport:
    """List all combinations of the variables that queries were about.

    Raises:
        InvalidInput: If there are more than ``MOST_VALUES`` combinations.
    """
    by_name = group_pairs((variable[0], variable) for variable in variables)
    positions: dict[Variable, Indices] = {}
    size = 1
    for name, attribute_variables in by_name.items():
        for row_variables, rows in _values_or_histories(domain, name, attribute_variables):
            size *= len(rows)
            if size > MOST_VALUES:
                names = _variables_text(domain, chain.from_iterable(by_name.values()))
                raise InvalidInput(
                    f"got more than {MOST_VALUES:,} combinations of {names}; expected at most "
                    f"{MOST_VALUES:,}. If the choice of questions did not depend on responses, "
                    "call answers.about(…, planned=True) first",
                    "domain",
                )
            positions = {v: np.repeat(earlier, len(rows)) for v, earlier in positions.items()}
            for column, variable in enumerate(row_variables):
                positions[variable] = np.tile(rows[:, column], size // len(rows))
    return RecordSupport(domain, positions)


def _values_or_histories(
    domain: Attributes, name: str, attribute_variables: Sequence[Variable]
) -> list[tuple[list[Variable], Indices]]:
    """List the values of an attribute, or its allowed histories over some steps, a row for each."""
    attribute = domain[name]
    if attribute.change is None or not attribute.change.limited:
        single = np.arange(len(attribute.values))[:, None]
        return [([variable], single) for variable in attribute_variables]
    steps = sorted(step for _, step in attribute_variables if step is not None)
    for rows in allowed_histories(attribute, steps):
        if len(rows) > MOST_VALUES:
            raise InvalidInput(
                f"got more than {MOST_VALUES:,} histories of {name} over the {len(steps)} steps "
                f"of the queries; expected at most {MOST_VALUES:,}",
                "domain",
            )
    return [([(name, step) for step in steps], rows)]


def _variables_text(domain: Attributes, variables: Iterable[Variable]) -> str:
    steps: dict[str, list[int]] = {}
    for name, step in variables:
        steps.setdefault(name, []).extend([] if step is None else [step])
    texts = []
    for name in domain.names:
        if name in steps:
            when = format_list(sorted(steps[name]))
            plural = "s" if len(steps[name]) > 1 else ""
            texts.append(f"{name} at step{plural} {when}" if steps[name] else name)
    return format_list(texts)


#: Entries of a table of probabilities, with a row for each response: up to 32 MiB.
LARGEST_TABLE = 1 << 22


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Points(FiniteSet):
    """Points of a box as the values of a distribution."""

    samples: Samples

    def __init__(self, samples: Samples) -> None:
        object.__setattr__(self, "samples", samples)
        object.__setattr__(self, "names", samples.box.called("value"))
        object.__setattr__(self, "values", samples.points)

    def __repr__(self) -> str:
        return f"Points({len(self):,})"

    def tree(self) -> dict[str, Any]:
        raise InvalidInput("points are no domain of a file; their box is")


@dataclass(frozen=True, slots=True, eq=False)
class PointSupport:
    """Points of a box."""

    samples: Samples

    def __len__(self) -> int:
        return len(self.samples)

    def likelihoods(self, query: Query) -> ResponseLikelihoods:
        likelihood, columns = query.on(self.samples.box), list(self.samples.columns)
        return ResponseLikelihoods(
            len(likelihood.responses),
            lambda position: likelihood.logs(position, columns),
            lambda: _response_table(likelihood, self.samples),
        )


def read_support(support: Any, box: Box) -> Samples:
    """Read the points on which a distribution is estimated: samples, or rows of them."""
    samples = support if isinstance(support, Samples) else Samples(box, support)
    if samples.box != box:
        raise InvalidInput("its box differs from that of the answers")
    return samples


def point_scores(query: Query, samples: Samples) -> Floats:
    """Compute the score that a query is about at each point of a sample.

    Every response is an unbiased estimate of the score, so the score is their mean.

    Args:
        query: A query about a score.
        samples: Points of a box.

    Returns:
        One score per point.
    """
    expect(samples, Samples, "Samples")
    meaning, likelihood = query.meaning(samples.box), query.on(samples.box)
    estimates = np.array([float(meaning.estimate(response)) for response in likelihood.responses])
    return np.asarray(estimates @ _response_table(likelihood, samples))


def _response_table(likelihood: BoxLikelihood, samples: Samples) -> Floats:
    """Compute Pr(response | point): a row per response, a column per point."""
    response_count, columns = len(likelihood.responses), list(samples.columns)
    if response_count * len(samples) > LARGEST_TABLE:
        raise InvalidInput(
            f"got {response_count:,} responses at {len(samples):,} points; expected at most "
            f"{LARGEST_TABLE:,} pairs of them. Pass fewer points"
        )
    rows = [likelihood.weights(position, columns) for position in range(response_count)]
    table = np.array([[float(weight) for weight in row] for row in rows])
    return np.asarray(table / table.sum(axis=0))


@dataclass(frozen=True, slots=True, eq=False)
class Estimand:
    """The values whose distribution is wanted, and the finer support on which it is estimated."""

    domain: FiniteSet
    support: MixtureSupport
    #: The index of the value that each point of the support belongs to.
    value_index: Indices
    #: A description of the support, if it is finer than the values.
    model: str | None = None

    def value_groups(self, groups: Indices) -> Indices:
        """Number the values; those made of points of equal ``groups`` get equal numbers."""
        groups_of_value: list[list[int]] = [[] for _ in range(len(self.domain))]
        for value, group in zip(self.value_index.tolist(), groups.tolist(), strict=True):
            groups_of_value[value].append(group)
        keys = [tuple(sorted(point_groups)) for point_groups in groups_of_value]
        group_ids = {key: index for index, key in enumerate(dict.fromkeys(keys))}
        return np.array([group_ids[key] for key in keys])


def read_estimand(answers: Answers, about: Any, step: Any, support: Any = None) -> Estimand:
    """Read what a distribution is about: all values, named attributes, or points of a box."""
    names: tuple[str, ...] | None = None
    if about is not None:
        names, step = read_about([about] if isinstance(about, str) else about, step)
    elif step is not None:
        raise InvalidInput("requires about=", "at")
    domain = answers.domain
    if support is not None and not isinstance(domain, Box):
        raise InvalidInput("only for a distribution on a box; leave it out", "support")
    match domain:
        case FiniteSet():
            return _set_estimand(domain, names, step)
        case Attributes():
            return _attributes_estimand(answers, domain, names, step)
        case Box():
            return _box_estimand(domain, names, support)
        case _:
            assert_never(domain)


def _set_estimand(domain: FiniteSet, names: tuple[str, ...] | None, step: int | None) -> Estimand:
    support = SetSupport(domain)
    if names is None:
        return Estimand(domain, support, np.arange(len(domain)))
    if not isinstance(domain, Part):
        raise InvalidInput("a finite set has no attributes; leave it out", "about")
    if step is not None:
        raise InvalidInput("leave it out: these answers are about one step", "at")
    return Estimand(read_at("about", domain.part, names), support, domain.indices_about(names))


def _attributes_estimand(
    answers: Answers, domain: Attributes, names: tuple[str, ...] | None, step: int | None
) -> Estimand:
    if names is None:
        raise InvalidInput(
            f"the domain has attributes; call answers.about(…) with some of "
            f"{join_names(domain.names)}, or pass about=… to estimate them with all others",
            "domain",
        )
    part = read_at("about", domain.part, names)
    named_variables = domain.variables(names, step)
    variables = _queried_variables(answers, domain)
    for name, named_step in named_variables:
        if (name, named_step) not in variables:
            when = "" if named_step is None else f" at step {named_step}"
            raise InvalidInput(f"no subject answered about {name}{when}", "about")
    support = record_support(domain, variables)
    return Estimand(part, support, support.indices_of(named_variables), support.description())


def _box_estimand(domain: Box, names: tuple[str, ...] | None, support: Any) -> Estimand:
    if names is not None:
        raise InvalidInput("call answers.about(…) with a coordinate that has categories", "about")
    if support is None:
        raise InvalidInput(
            "got a box, whose values cannot be listed; expected a finite domain. Or pass a "
            "support: points that represent the values",
            "domain",
        )
    samples = read_at("support", read_support, support, domain)
    indices = np.arange(len(samples))
    return Estimand(Points(samples), PointSupport(samples), indices, f"{len(samples):,} points")


def _queried_variables(answers: Answers, domain: Attributes) -> Sequence[Variable]:
    queries = [answers.queries[key] for key, _ in answers.responses]
    variables = dict.fromkeys(v for query in queries for v in query.on(domain).variables)
    return sorted(variables, key=lambda v: (domain.names.index(v[0]), v[1] or 0))


def query_scores(query: Query, domain: FiniteSet) -> NDArray[np.float64]:
    r"""Compute the score that a query is about, for each value of a finite domain.

    Every response is an unbiased estimate of the score, so the score is their mean:

    .. math:: s(x) = \sum_y P[Q(x) = y]\, \mathrm{estimate}(y)

    With these scores, :meth:`Distribution.mean` is the mean that :func:`estimate_mean` estimates,
    and stays valid under a filter.

    >>> import expost as xp
    >>> sleep = xp.perturbation([0, 6, 12], range=(0, 12), epsilon=1)
    >>> [round(x) for x in query_scores(sleep, xp.FiniteSet(["short", "fair", "long"]))]
    [0, 6, 12]
    """
    meaning, likelihood = query.meaning(domain), query.on(domain)
    if len(likelihood.responses) * len(domain) > LARGEST_TABLE:
        raise InvalidInput(
            f"got {len(likelihood.responses):,} responses on {len(domain):,} values; expected at "
            f"most {LARGEST_TABLE:,} pairs of them"
        )
    estimates = np.array([float(meaning.estimate(response)) for response in likelihood.responses])
    return np.asarray(response_probabilities(likelihood) @ estimates)
