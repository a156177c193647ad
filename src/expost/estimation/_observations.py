"""Tables of likelihoods, with a row for each pattern of responses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from expost._types import Floats, Indices
from expost.answers import Answers
from expost.errors import InvalidInput
from expost.estimation._support import MOST_VALUES, MixtureSupport
from expost.numbers import blocks
from expost.tally import TallyIndex

__all__ = [
    "Observations",
    "check_values",
    "merge_equal_columns",
    "observe_answers",
    "relative_likelihoods",
]


# A table of all patterns and values takes up to half a gibibyte.
_LARGEST_LIKELIHOOD_TABLE = 1 << 26
_TABLE_BLOCK = 1 << 20

# Products in one step of the search.
_MOST_STEP_PRODUCTS = 1_500_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """Likelihoods by pattern of responses, the number of subjects with each, and groups of values.

    The largest entry of a row is one. Values with equal likelihoods for all responses are a group,
    and share a column.
    """

    table: Floats
    counts: Floats
    #: The group of each value.
    groups: Indices


def observe_answers(
    answers: Answers, support: MixtureSupport, weights: Floats | None = None
) -> Observations:
    """Tabulate the likelihoods of complete answers; subjects count as often as their weights."""
    counts, patterns = _patterns(answers, weights)
    logs, groups = merge_equal_columns(
        _response_logs(answers, support, len(patterns)), len(patterns)
    )
    pattern_lengths = np.array([len(codes) for codes in patterns])
    ends = np.cumsum(pattern_lengths)
    table = np.empty((len(patterns), logs.shape[1]))
    block_rows = max(1, _TABLE_BLOCK // (logs.shape[1] * int(pattern_lengths.max())))
    for block in blocks(len(patterns), block_rows):
        block_starts = ends[block] - pattern_lengths[block]
        terms = logs.take(np.concatenate(patterns[block]), axis=0)
        table[block] = np.add.reduceat(terms, block_starts - block_starts[0], axis=0)
    return Observations(relative_likelihoods(table), counts, groups)


def _response_logs(answers: Answers, support: MixtureSupport, patterns: int) -> Floats:
    """Compute the log-likelihood of each recorded response, at each value."""
    check_values(len(support))
    row_count = max(patterns, len(answers.responses))
    if row_count * len(support) > _LARGEST_LIKELIHOOD_TABLE:
        raise InvalidInput(
            f"got {row_count:,} kinds of responses for {len(support):,} values, too many for a "
            "likelihood"
        )
    likelihoods = {
        key: support.likelihoods(answers.queries[key])
        for key in {key for key, _ in answers.responses}
    }
    return np.array([likelihoods[key].logs(position) for key, position in answers.responses])


def check_values(size: int) -> None:
    """Refuse more values than can be estimated together."""
    if size > MOST_VALUES:
        raise InvalidInput(
            f"got {size:,} values; expected at most {MOST_VALUES:,}",
            "domain",
        )


def merge_equal_columns(logs: Floats, patterns: int) -> tuple[Floats, Indices]:
    """Merge the columns of values with equal likelihoods; return them, and the group of each value.

    Raises:
        InvalidInput: If a search with so many ``patterns`` would take too long.
    """
    columns: dict[bytes, int] = {}
    groups = np.array(
        [columns.setdefault(column.tobytes(), len(columns)) for column in logs.T + 0.0]
    )
    if patterns * (len(columns) + 20) ** 2 > _MOST_STEP_PRODUCTS:
        raise InvalidInput(
            f"got {patterns:,} kinds of responses for {len(columns):,} values, too many for a "
            "likelihood. Estimate fewer values, or frequencies"
        )
    return logs[:, np.unique(groups, return_index=True)[1]], groups


def _patterns(answers: Answers, weights: Floats | None) -> tuple[Floats, list[Indices]]:
    """Count the subjects with each pattern of responses, and list the patterns.

    Patterns are sorted by queries and responses, so that a seed draws the same subjects whether a
    table or a folder had them, and in whatever order.
    """
    contents = {
        key: answers.queries[key].content_id for key in {key for key, _ in answers.responses}
    }
    responses = [(contents[key], position) for key, position in answers.responses]
    ranked = np.array(sorted(range(len(responses)), key=responses.__getitem__))
    tallies = TallyIndex.of_rows(np.argsort(ranked)[answers.codes], answers.starts)
    pattern_of = tallies.of_subject - 1  # every subject answered, so none has the empty tally
    patterns = [tallies.responses(tally) for tally in range(1, len(tallies))]
    order = sorted(range(len(patterns)), key=lambda index: patterns[index].tolist())
    counts = np.bincount(pattern_of, weights)[order].astype(np.float64)
    return counts, [ranked[patterns[index]] for index in order]


def relative_likelihoods(logs: Floats) -> Floats:
    """Compute likelihoods from their logarithms, in place, with one as the largest of each row."""
    highest = logs.max(axis=1)
    if np.isneginf(highest).any():
        raise InvalidInput("no value allows all responses of some subjects")
    logs -= highest[:, None]
    np.exp(logs, out=logs)
    return logs
