"""Which subjects an analyst may ask about: everybody, or groups that were named in advance.

Counts of several groups can be subtracted. The *cells* are the sets of subjects that belong to the
same groups; every sum or difference of groups is made of whole cells. So no cell may be smaller
than the smallest group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from expost.answers import Subject
from expost.collector._problems import RequestProblem

__all__ = ["SMALLEST", "check_new_group", "too_small"]

#: The default of the smallest group.
SMALLEST = 20


def check_new_group(
    name: str,
    members: Collection[Subject],
    groups: Mapping[str, Collection[Subject]],
    everybody: Collection[Subject],
    smallest: int,
) -> None:
    """Refuse a group that is too small, alone or subtracted from others."""
    if name in groups:
        if set(groups[name]) == set(members):
            return
        raise RequestProblem(409, "group-exists", "a group of this name has other members")
    unknown = set(members).difference(everybody)
    if unknown:
        raise RequestProblem(
            422, "unknown-subject", "some members are not registered", unknown=len(unknown)
        )
    size = smallest_cell([*groups.values(), members], everybody)
    if len(set(members)) < smallest or size < smallest:
        raise RequestProblem(
            422,
            "group-too-small",
            "the group, or what remains when groups are subtracted, is too small",
            size=len(set(members)),
            smallest_difference=size,
            smallest=smallest,
        )


def smallest_cell(groups: Collection[Collection[Subject]], everybody: Collection[Subject]) -> int:
    """Return the size of the smallest cell that the groups make of everybody.

    >>> smallest_cell([["ann", "bob"]], ["ann", "bob", "cyd"])
    1
    """
    sets = [frozenset(group) for group in groups]
    cells = Counter(tuple(subject in group for group in sets) for subject in everybody)
    return min(cells.values(), default=0)


def too_small(size: int, smallest: int) -> RequestProblem:
    """Return the refusal of a question about few subjects."""
    reason = "the question is about too few subjects"
    return RequestProblem(403, "group-too-small", reason, size=size, smallest=smallest)
