"""Covariates: what is public about subjects, such as the groups they are in and survey weights."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from expost._format import shorten
from expost.answers._answers import Answers, Subject, read_subject
from expost.answers._columns import (
    column_values,
    encode_parsed_column,
    parse_spelling,
    read_columns,
)
from expost.domains import join_names
from expost.errors import InvalidInput
from expost.files.reading import double

__all__ = ["Covariates", "read_covariates"]

_MOST_GROUPS = 100

# A whole number that a program wrote as a decimal.
_WHOLE_NUMBER = re.compile(r"(-?[0-9]+)\.0+")


@dataclass(frozen=True, slots=True)
class Covariates:
    """The groups and the weights of the subjects of answers."""

    #: The columns that make groups; without any, all subjects with covariates are one group.
    by: tuple[str, ...]
    #: The subjects of each group by its name, in order; a group may have none who answered.
    groups: Mapping[str, frozenset[Subject]]
    #: The survey weight of every subject of a group.
    weights: Mapping[Subject, float] | None
    #: Subjects without covariates.
    unmatched: frozenset[Subject]
    #: Subjects with an empty cell in a column that makes groups.
    ungrouped: frozenset[Subject]


def read_covariates(
    table: Any, answers: Answers, by: Sequence[str] = (), weight: str | None = None
) -> Covariates:
    """Join a table with a row per subject to answers, by the column ``subject``.

    Args:
        table: A frame or a mapping of columns. Subjects without answers may be in it.
        answers: The answers; subject 3 is also found as "3" and as "3.0".
        by: The columns that make groups: one for each combination of their entries.
        weight: The column of survey weights, which are positive.

    Raises:
        InvalidInput: A column is missing, a subject has two rows or a weight is no positive number.
            The error names the row.
    """
    weight_columns = [] if weight is None else [weight]
    columns = read_columns(table, list(dict.fromkeys(["subject", *by, *weight_columns])))
    codes, keys = encode_parsed_column(
        columns["subject"], lambda name: _join_key(read_subject(name)), "subject"
    )
    if len(keys) < len(codes):
        first_rows = np.unique(codes, return_index=True)[1]
        row = int(np.setdiff1d(np.arange(len(codes)), first_rows)[0])
        reason = f"{keys[codes[row]]!r} appears twice; expected one row per subject"
        raise InvalidInput(reason, f"row {row + 1}: subject")
    subject_of = _subjects_by_key(answers)
    subjects = [subject_of.get(key) for key in keys]
    members: dict[tuple[str, ...], set[Subject]] = {}
    ungrouped = set()
    cells = [[_group_name(cell) for cell in column_values(columns[name])] for name in by]
    for subject, *names in zip(subjects, *cells, strict=True):
        group = tuple(names) if all(names) else None
        if group is not None:
            members.setdefault(group, set())
        if subject is None:
            continue
        if group is None:
            ungrouped.add(subject)
        else:
            members[group].add(subject)
    if len(members) > _MOST_GROUPS:
        reason = f"got {len(members):,} groups; expected at most {_MOST_GROUPS}. Group its values"
        raise InvalidInput(reason, f"column {by[0]!r}")
    matched = {subject for subject in subjects if subject is not None}
    if not matched:
        known = join_names([shorten(str(name), 20) for name in subject_of.values()])
        reason = f"none of these subjects is in the answers, whose subjects are {known}"
        raise InvalidInput(reason, "subject")
    if not any(members.values()):
        raise InvalidInput(f"no subject of the answers has an entry in {join_names(by)}")
    weights = None
    if weight is not None:
        of_row, numbers = encode_parsed_column(columns[weight], _read_weight, weight)
        weights = {
            subject: numbers[code]
            for subject, code in zip(subjects, of_row.tolist(), strict=True)
            if subject is not None
        }
    groups = {", ".join(group): frozenset(members[group]) for group in sorted(members, key=_order)}
    if len(groups) < len(members):
        raise InvalidInput("two groups get the same name; leave commas out of their entries")
    unmatched = frozenset(subject_of.values()) - matched
    return Covariates(tuple(by), groups, weights, unmatched, frozenset(ungrouped))


def _join_key(name: Subject) -> str:
    match = _WHOLE_NUMBER.fullmatch(str(name))
    return match[1] if match else str(name)


def _subjects_by_key(answers: Answers) -> dict[str, Subject]:
    """Return the subjects who answered or left a query unanswered, as a table spells them."""
    names = dict.fromkeys(answers.subjects)
    for pairs in (answers.unanswered or {}).values():
        names |= dict.fromkeys(subject for subject, _ in pairs)
    result: dict[str, Subject] = {}
    for name in names:
        other = result.setdefault(_join_key(name), name)
        if other != name:
            raise InvalidInput(f"the answers have subjects {other!r} and {name!r}", "subject")
    return result


def _group_name(cell: Any) -> str:
    """Return the name of an entry; empty if the cell is."""
    if cell is None or cell != cell:  # NaN differs from itself
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


def _order(group: tuple[str, ...]) -> list[tuple[float, str]]:
    """Sort numbers by size, before words."""
    values = [parse_spelling(name) for name in group]
    return [
        (float(value) if isinstance(value, (int, float)) else math.inf, name)
        for value, name in zip(values, group, strict=True)
    ]


def _read_weight(cell: Any) -> float:
    try:
        weight = double(parse_spelling(cell) if isinstance(cell, str) else cell)
    except InvalidInput:
        weight = 0.0
    if not weight > 0:
        hint = "delete the row to leave the subject out"
        raise InvalidInput(f"got {cell!r}; expected a number above 0; {hint}")
    return weight
