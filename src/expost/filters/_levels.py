"""Levels of protection: which pairs of values a filter keeps indistinguishable.

A level is a set of pairs, fixed before the first response, as the budget is. By default it has all
pairs, so the budget is about the person as a whole. Each other level names *units*: sets of
variables. Two records are a pair if they differ within one unit. The units of a level cover all
variables, because a variable outside could be asked about without noise.

Everything that a level refuses is refused here. Proof: docs/theory/levels.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

from expost._format import format_list, shorten
from expost.domains import Attributes, Domain, Variable, require_attributes, require_no_box
from expost.errors import InvalidInput, at, expect, read_at
from expost.files.reading import array, members, read_integer, text

__all__ = [
    "EVERYTHING",
    "LEVEL_WITH_DELTA",
    "SATURATING_UNDER_SEVERAL",
    "Constants",
    "Everything",
    "Group",
    "Groups",
    "Level",
    "OneAttribute",
    "Steps",
    "Unit",
    "Window",
    "attributes",
    "groups",
    "level_from_json",
    "steps",
    "unit_of_question",
    "units_of",
]

#: Why a filter with a delta has no level.
LEVEL_WITH_DELTA = (
    "a budget with a delta is about the person as a whole; put a pure filter at a level next to "
    "it in AllOf"
)

#: Why a saturating query is not made for several filters.
SATURATING_UNDER_SEVERAL = (
    "a saturating query ends at the budget of one filter, and AllOf has several; make it from a "
    "transcript that names one of them"
)

#: The longest window; no study has more steps than that.
_MOST_STEPS = 10**6
_MOST_GROUPS = 1_000


class Unit(ABC):
    """Variables within which the two records of a protected pair may differ."""

    @abstractmethod
    def has(self, variable: Variable) -> bool:
        """Return whether the records may differ in this variable."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The name of the unit, for people."""

    def touches(self, variables: Iterable[Variable]) -> bool:
        """Return whether the records may differ in one of these variables."""
        return any(self.has(variable) for variable in variables)


@final
@dataclass(frozen=True, slots=True)
class Group(Unit):
    """Attributes with their whole histories."""

    names: frozenset[str]

    @property
    def label(self) -> str:
        return ", ".join(sorted(self.names))

    def has(self, variable: Variable) -> bool:
        return variable[0] in self.names


@final
@dataclass(frozen=True, slots=True)
class Window(Unit):
    """The values of all changing attributes at some consecutive steps."""

    first: int
    width: int

    @property
    def label(self) -> str:
        last = self.first + self.width - 1
        return f"step {self.first}" if self.width == 1 else f"steps {self.first} to {last}"

    def has(self, variable: Variable) -> bool:
        step = variable[1]
        return step is not None and self.first <= step < self.first + self.width


@final
@dataclass(frozen=True, slots=True)
class Constants(Unit):
    """All attributes that do not change: one more step, which is in no window."""

    @property
    def label(self) -> str:
        return "all that does not change"

    def has(self, variable: Variable) -> bool:
        return variable[1] is None


class Level(ABC):
    """A set of pairs of values that a filter protects. Frozen, and part of a transcript file."""

    @abstractmethod
    def tree(self) -> Any:
        """Return the level in its JSON shape."""

    @abstractmethod
    def check(self, domain: Domain) -> None:
        """Refuse a domain on which the level promises nothing, or that it does not cover.

        Raises:
            InvalidInput: With the reason.
        """

    @property
    @abstractmethod
    def about(self) -> str:
        """What a budget at this level is about, for people: "any one step"."""

    @property
    @abstractmethod
    def gap(self) -> str:
        """What the level does not cover, in a sentence; empty if it covers everything."""


@final
@dataclass(frozen=True, slots=True)
class Everything(Level):
    """All pairs of values: the budget is about the person as a whole."""

    def tree(self) -> Any:
        return "everything"

    def check(self, domain: Domain) -> None:
        """Accept every domain."""

    @property
    def about(self) -> str:
        return "the person as a whole"

    @property
    def gap(self) -> str:
        return ""


EVERYTHING = Everything()


@final
@dataclass(frozen=True, slots=True)
class OneAttribute(Level):
    """Pairs of records that differ in one attribute, with its whole history."""

    def tree(self) -> Any:
        return {"attributes": 1}

    def check(self, domain: Domain) -> None:
        _require_attributes(domain)

    @property
    def about(self) -> str:
        return "any one attribute"

    @property
    def gap(self) -> str:
        return (
            "It does not cover several attributes together: a fact that n of them show can cost "
            "up to n times the budget."
        )


@final
@dataclass(frozen=True, slots=True)
class Groups(Level):
    """Pairs of records that differ within one of these groups of attributes."""

    names: tuple[tuple[str, ...], ...]

    def tree(self) -> Any:
        return {"groups": [list(group) for group in self.names]}

    def check(self, domain: Domain) -> None:
        domain = _require_attributes(domain)
        grouped = {name for group in self.names for name in group}
        for name in grouped:
            with at("protects"):
                domain[name]  # which suggests a name that is there
        if missing := [name for name in domain.names if name not in grouped]:
            raise InvalidInput(
                f"the groups leave out {format_list(missing)}, which could be asked about without "
                "noise; every attribute must be in a group",
                "protects",
            )

    @property
    def about(self) -> str:
        return f"any one of {len(self.names):,} groups of attributes"

    @property
    def gap(self) -> str:
        return (
            "It does not cover several groups together: a fact that n of them show can cost up "
            "to n times the budget."
        )


@final
@dataclass(frozen=True, slots=True)
class Steps(Level):
    """Pairs of histories that differ within some consecutive steps.

    Pairs that differ in the attributes that do not change belong to it too: these together count
    as one more step, which no window contains.
    """

    width: int

    def tree(self) -> Any:
        return {"steps": self.width}

    def check(self, domain: Domain) -> None:
        domain = _require_attributes(domain)
        if not domain.changes:
            raise InvalidInput(
                "steps need an attribute that changes, such as changing(['no', 'yes'])", "protects"
            )
        for name, kind in zip(domain.names, domain.kinds, strict=True):
            if kind.change is not None and kind.change.limited:
                raise InvalidInput(
                    f"{name} has a limit on its changes, which ties its steps together; leave out "
                    "times and max_step, or protect attributes",
                    "protects",
                )

    @property
    def about(self) -> str:
        return "any one step" if self.width == 1 else f"any {self.width:,} steps in a row"

    @property
    def gap(self) -> str:
        if self.width == 1:
            return (
                "It does not cover several steps together: a habit that n steps show can cost up "
                "to n times the budget."
            )
        return (
            f"It does not cover longer spans: a habit that lasts n times {self.width:,} steps can "
            "cost up to n times the budget."
        )

    def windows_at(self, step: int) -> range:
        """Return the first steps of all windows that contain a step."""
        return range(max(1, step - self.width + 1), step + 1)


def attributes(count: int = 1) -> OneAttribute:
    """Protect one attribute of a record, with its whole history, and not several together.

    Args:
        count: How many attributes; only 1 is supported. For more, see :func:`groups`.

    >>> import expost as xp
    >>> xp.BayesianFilter(epsilon=1, protects=xp.attributes(1))
    BayesianFilter(epsilon=1, protects=OneAttribute())
    """
    return read_at("protects", _one_attribute, count)


def groups(*names: Sequence[str]) -> Groups:
    """Protect each of some groups of attributes, and not several groups together.

    The groups must cover all attributes of the record, and may overlap.

    Args:
        names: The names of the attributes of each group.

    >>> import expost as xp
    >>> level = xp.groups(["age", "region"], ["smokes"])
    >>> xp.BayesianFilter(epsilon=1, protects=level).limit
    '1 about any one of 2 groups of attributes'
    """
    return read_at("protects", _groups, names)


def steps(width: int = 1) -> Steps:
    """Protect so many consecutive steps of a history: event-level and w-event privacy.

    Args:
        width: The number of steps in a row.

    >>> import expost as xp
    >>> xp.BayesianFilter(epsilon=1, protects=xp.steps(4)).limit
    '1 about any 4 steps in a row'
    """
    return read_at("protects", _steps, width)


def level_from_json(value: Any) -> Level:
    """Read a level of a transcript file.

    >>> level_from_json({"groups": [["age", "region"], ["smokes"]]})
    Groups(names=(('age', 'region'), ('smokes',)))
    """
    fields = members(value, optional=("attributes", "groups", "steps"))
    if len(fields) != 1:
        raise InvalidInput('must be one of {"attributes": 1}, {"groups": […]} and {"steps": n}')
    ((kind, parameter),) = fields.items()
    with at(kind):
        if kind == "groups":
            return _groups([list(map(text, array(group))) for group in array(parameter)])
        number = read_integer(parameter)
        return _one_attribute(number) if kind == "attributes" else _steps(number)


def _one_attribute(count: int) -> OneAttribute:
    if type(count) is not int or count != 1:
        raise InvalidInput("only 1 attribute can be protected; groups protect several")
    return OneAttribute()


def _groups(names: Sequence[Sequence[str]]) -> Groups:
    if not names:
        raise InvalidInput("needs a group: without one, no pair of records is protected")
    if len(names) > _MOST_GROUPS:
        raise InvalidInput(f"{len(names):,} groups; at most {_MOST_GROUPS:,} are supported")
    for group in names:
        expect(group, (list, tuple), "a list of names of attributes")
        if not group:
            raise InvalidInput("a group is empty, so it protects no pair of records")
        for name in group:
            expect(name, str, "the name of an attribute")
        if len(set(group)) < len(group):
            raise InvalidInput("a group has a name twice")
    return Groups(tuple(map(tuple, names)))


def _steps(width: int) -> Steps:
    if type(width) is not int or not 1 <= width <= _MOST_STEPS:
        raise InvalidInput(
            f"the number of steps must be an integer from 1 to {_MOST_STEPS:,}, not "
            f"{shorten(repr(width))}"
        )
    return Steps(width)


def _require_attributes(domain: Domain) -> Attributes:
    leave_out = "leave it out to protect the person as a whole"
    with at("protects"):
        require_no_box(
            domain, f"levels need Attributes; on a box they are not supported; {leave_out}"
        )
        return require_attributes(
            domain, f"a finite set has no attributes and no steps; {leave_out}"
        )


def units_of(level: Level, domain: Attributes) -> tuple[Group, ...]:
    """Return the groups that a level of attributes protects."""
    if isinstance(level, OneAttribute):
        return tuple(Group(frozenset([name])) for name in domain.names)
    assert isinstance(level, Groups), "steps have windows instead"
    return tuple(dict.fromkeys(Group(frozenset(group)) for group in level.names))


def unit_of_question(level: Level, domain: Attributes, variables: Sequence[Variable]) -> Unit:
    """Return the unit that has all variables of a saturating query's question.

    Raises:
        InvalidInput: Several units have a variable of it.
    """
    units: Sequence[Unit]
    if isinstance(level, Steps):
        asked = sorted({step for _, step in variables if step is not None})
        units = [Constants(), *(Window(step, 1) for step in asked)]
    else:
        units = units_of(level, domain)
    touched = [unit for unit in units if unit.touches(variables)]
    if len(touched) > 1:
        raise InvalidInput(
            "touches several groups or steps that the budget protects; a saturating query is "
            "about one of them",
            "question",
        )
    return touched[0]
