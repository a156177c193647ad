"""How likely each value makes what subjects responded: the table that a search starts from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from expost._types import Floats, Indices
from expost.answers import Answers
from expost.errors import InvalidInput
from expost.estimation.atoms import Atoms

__all__ = [
    "MOST_VALUES",
    "Observations",
    "alike_columns",
    "check_values",
    "observations_of",
    "scaled",
]


MOST_VALUES = 1_500
"""What is identified is worked out from a square matrix of this size."""

# A table of all patterns and values takes up to half a gibibyte.
_LARGEST_TABLE = 1 << 26
_BLOCK = 1 << 20

# Products in one step of the search.
_MOST_PRODUCTS = 1_500_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Likelihoods by pattern of responses, how many subjects gave each, and the groups of values.

    The largest entry of a row is one. Values that make each of the responses equally likely are
    a group, and share a column.
    """

    table: Floats
    counts: Floats
    alike: Indices
    """The group of each value."""


def observations_of(answers: Answers, atoms: Atoms) -> Observations:
    """What complete answers say."""
    counts, patterns = _patterns(answers)
    logs, alike = alike_columns(_response_logs(answers, atoms, len(patterns)), len(patterns))
    lengths = np.array([len(codes) for codes in patterns])
    ends = np.cumsum(lengths)
    table = np.empty((len(patterns), logs.shape[1]))
    size = max(1, _BLOCK // (logs.shape[1] * int(lengths.max())))
    for first in range(0, len(patterns), size):
        some = slice(first, first + size)
        starts = ends[some] - lengths[some]
        terms = logs.take(np.concatenate(patterns[some]), axis=0)
        table[some] = np.add.reduceat(terms, starts - starts[0], axis=0)
    return Observations(scaled(table), counts, alike)


def _response_logs(answers: Answers, atoms: Atoms, patterns: int) -> Floats:
    """The log-likelihood of each response that was given, at each value."""
    check_values(len(atoms))
    rows = max(patterns, len(answers.given))
    if rows * len(atoms) > _LARGEST_TABLE:
        raise InvalidInput(f"{rows:,} kinds of responses for {len(atoms):,} values are too many")
    seen = {key: atoms.seen(answers.queries[key]) for key in {key for key, _ in answers.given}}
    return np.array([seen[key].logs(position) for key, position in answers.given])


def check_values(size: int) -> None:
    """Refuse more values than can be estimated together."""
    if size > MOST_VALUES:
        raise InvalidInput(
            f"there are {size:,} values; at most {MOST_VALUES:,} can be estimated together",
            "domain",
        )


def alike_columns(logs: Floats, patterns: int) -> tuple[Floats, Indices]:
    """A column for each group of values that make every response as likely, and the groups.

    It refuses what would take too long for so many ``patterns``.
    """
    columns: dict[bytes, int] = {}
    alike = np.array([columns.setdefault(each.tobytes(), len(columns)) for each in logs.T + 0.0])
    if patterns * (len(columns) + 20) ** 2 > _MOST_PRODUCTS:
        raise InvalidInput(
            f"{patterns:,} kinds of responses for {len(columns):,} values are too many to "
            "estimate by likelihood; fewer values, or frequencies, take less"
        )
    return logs[:, np.unique(alike, return_index=True)[1]], alike


def _patterns(answers: Answers) -> tuple[Floats, list[Indices]]:
    """How many subjects gave each pattern of responses, and the patterns.

    They are in an order of their own, by what was asked and answered, so that a seed draws the same
    subjects whether a table or a folder had them, and in whatever order.
    """
    contents = {key: answers.queries[key].content_id for key in {key for key, _ in answers.given}}
    given = [(contents[key], position) for key, position in answers.given]
    ranked = np.array(sorted(range(len(given)), key=given.__getitem__))
    pattern_of, patterns = answers.patterns(np.argsort(ranked))
    whole, ends = np.concatenate(patterns), np.cumsum([0, *map(len, patterns)]).tolist()
    text, codes = whole.astype(">i8").tobytes(), ranked[whole]  # big-endian: in their order
    spans = list(pairwise(ends))
    order = sorted(
        range(len(spans)), key=lambda place: text[8 * spans[place][0] : 8 * spans[place][1]]
    )
    counts = np.bincount(pattern_of)[order].astype(np.float64)
    return counts, [codes[slice(*spans[place])] for place in order]


def scaled(logs: Floats) -> Floats:
    """Likelihoods from their logarithms, in place, so that the largest of each row is one."""
    highest = logs.max(axis=1)
    if np.isneginf(highest).any():
        raise InvalidInput("no value could give all that some subjects responded")
    logs -= highest[:, None]
    np.exp(logs, out=logs)
    return logs
