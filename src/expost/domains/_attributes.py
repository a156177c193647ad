"""Records: several finite attributes, whose combinations are never listed.

A query is asked about one attribute or a few of them. It sees their combinations as a finite set,
a :class:`Part` of the record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, overload

import numpy as np

from expost._types import Indices
from expost.cards import card
from expost.domains._coordinates import Categories, Integers, Side
from expost.domains._finite_set import (
    FiniteSet,
    Scalar,
    Value,
    coordinates_of,
    join_names,
    read_names,
)
from expost.errors import InvalidInput, at, read_at, unknown_name
from expost.files.reading import read_integer
from expost.numbers import ExactLike, decimal_text, exact

__all__ = [
    "MOST_COMBINATIONS",
    "Attribute",
    "Attributes",
    "Change",
    "Changing",
    "Part",
    "Record",
    "Variable",
    "changing",
]

MOST_COMBINATIONS = 100_000
_MOST_ATTRIBUTES = 1_000
_MOST_KEPT = 1 << 20  # combinations in the parts that are kept for the next question

#: A constant attribute with None, or a changing attribute at a step.
Variable = tuple[str, int | None]

#: The values of some attributes by their names; those of one that changes by step.
Record = dict[str, Scalar | dict[int, Scalar]]


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: its values, whether they are a range of integers, and how they may change."""

    values: FiniteSet
    integers: bool = False
    change: Change | None = None

    @classmethod
    def read(cls, definition: Any) -> Attribute:
        """Read what a user wrote."""
        if isinstance(definition, Changing):
            if isinstance(definition.values, Changing):
                raise InvalidInput("changes already")
            constant = cls.read(definition.values)
            definition.change.check(constant.values.values)
            return cls(constant.values, constant.integers, definition.change)
        if isinstance(definition, Integers):
            _check_size(definition.upper - definition.lower + 1)
            return cls(FiniteSet(range(definition.lower, definition.upper + 1)), integers=True)
        if isinstance(definition, (str, bytes, dict)):
            raise InvalidInput("must be a list of values, integers(lower, upper) or changing(...)")
        values = FiniteSet(definition.labels if isinstance(definition, Categories) else definition)
        if values.names is not None:
            raise InvalidInput("the values of an attribute are labels or numbers, not vectors")
        _check_size(len(values))
        return cls(values)

    def __repr__(self) -> str:
        first, last = self.values.values[0], self.values.values[-1]
        shown = f"integers[{first}, {last}]" if self.integers else f"{len(self.values)} values"
        return shown if self.change is None else f"changing[{shown}{self.change}]"

    @property
    def fractions(self) -> tuple[Fraction, ...]:
        """The values as the decimals that a person wrote, where they are numbers."""
        return tuple(exact(x) for x in self.values.values if isinstance(x, (int, float)))

    def tree(self) -> Any:
        """Return the attribute as it is in a transcript file."""
        listed = self.values.tree()["values"]
        constant: Any = {"integers": [listed[0], listed[-1]]} if self.integers else listed
        return constant if self.change is None else {"changing": constant, **self.change.tree()}


def _no_attribute(name: str, names: Sequence[str]) -> InvalidInput:
    """Return the error about an attribute that is not there."""
    return InvalidInput(unknown_name("attribute", name, names))


def _check_size(size: int) -> None:
    if size > MOST_COMBINATIONS:
        reason = f"{size:,} values are too many for an attribute"
        raise InvalidInput(f"{reason}; at most {MOST_COMBINATIONS:,} are supported")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Attributes:
    """A domain of records: named attributes, each with finitely many values.

    An attribute is a list of labels or numbers, :func:`integers`, or :func:`changing` for a value
    that changes from step to step. Queries of the finite families are asked about one attribute or
    a few of them, with :meth:`Query.about`. The combinations are never listed, so their number
    does not matter, and answers about different attributes do not cancel.

    Args:
        definitions: Attributes by their names, where a name is no identifier.
        named: Attributes by their names.

    >>> import expost as xp
    >>> person = xp.Attributes(region=["north", "south"], age=xp.integers(18, 99))
    >>> person
    Attributes(region=2 values, age=integers[18, 99])
    >>> session = xp.Session(
    ...     person, {"region": "north", "age": 34}, filter=xp.BayesianFilter(epsilon=2)
    ... )
    >>> answer = session.ask(xp.randomized_response(epsilon=1).about("region"))
    """

    #: There are too many to list.
    values: ClassVar[tuple[Value, ...]] = ()
    #: Coordinates between bounds; attributes have values instead.
    sides: ClassVar[tuple[Side, ...]] = ()
    names: tuple[str, ...]
    kinds: tuple[Attribute, ...]

    def __init__(self, definitions: dict[str, Any] | None = None, /, **named: Any) -> None:
        named = {**(definitions or {}), **named}
        names = read_names(list(named))
        if len(names) > _MOST_ATTRIBUTES:
            raise InvalidInput(
                f"{len(names):,} attributes; at most {_MOST_ATTRIBUTES:,} are supported"
            )
        kinds = tuple(read_at(name, Attribute.read, named[name]) for name in names)
        vars(self).update(names=names, kinds=kinds)

    def __repr__(self) -> str:
        shown = [f"{name}={kind!r}" for name, kind in self._by_name.items()]
        return f"Attributes({join_names(shown)})"

    def _repr_html_(self) -> str:
        return card(
            "Attributes",
            {"attributes": f"{len(self.names):,}"},
            columns=("attribute", "values", ""),
            items=list(self._by_name.items()),
            row=lambda _index, named: (
                named[0], repr(named[1]), join_names(list(map(str, named[1].values.values))),
            ),
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self.tree() == other.tree()

    def __hash__(self) -> int:
        return hash(frozenset(self.names))

    @cached_property
    def changes(self) -> bool:
        """True if some attribute may change, so that there are steps."""
        return any(kind.change is not None for kind in self.kinds)

    @cached_property
    def _by_name(self) -> dict[str, Attribute]:
        return dict(zip(self.names, self.kinds, strict=True))

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: index for index, name in enumerate(self.names)}

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], Part]:
        return {}

    @cached_property
    def twins(self) -> tuple[Attributes, str]:
        """The record with a second copy of every attribute, and what is added to their names."""
        suffix = "′"
        while any(name + suffix in self._by_name for name in self.names):
            suffix += "′"
        twins, names = object.__new__(Attributes), tuple(name + suffix for name in self.names)
        vars(twins).update(names=self.names + names, kinds=self.kinds * 2)
        return twins, suffix

    def __getitem__(self, name: str) -> Attribute:
        """Return an attribute by its name."""
        if name not in self._by_name:
            raise _no_attribute(name, self.names)
        return self._by_name[name]

    def part(self, about: tuple[str, ...]) -> Part:
        """Return the values that a query about these attributes sees."""
        part = self._parts.get(about)
        if part is None:
            part = Part(about, [self[name].values for name in about])
            if sum(map(len, self._parts.values())) + len(part) > _MOST_KEPT:
                self._parts.clear()
            self._parts[about] = part
        return part

    def variables(self, about: Sequence[str], step: int | None) -> tuple[Variable, ...]:
        """Return what a query about these attributes depends on, checked.

        A step has to be named where one of the attributes changes, and only there.
        """
        changing = [name for name in about if self[name].change is not None]
        if changing and step is None:
            raise InvalidInput(f"{changing[0]} changes from step to step; name the step", "at")
        if not changing and step is not None:
            raise InvalidInput(f"{join_names(about)} does not change; leave it out", "at")
        return tuple((name, step if name in changing else None) for name in about)

    def indices(self, about: Sequence[str]) -> list[int]:
        """Return the indices of these attributes in a record."""
        return [self._indices[name] for name in about]

    def called(self, alone: str) -> tuple[str, ...]:
        """Return the names of the columns in tables."""
        return self.names

    def locate(self, value: Any) -> tuple[int, ...] | None:
        """Return the positions of the values of a record, or None if one of them is outside.

        Of an attribute that changes it is the value at one step. It never raises: an error could
        show the value.
        """
        try:
            record = coordinates_of(value, self.names)
            pairs = zip(self.kinds, record, strict=True)
            positions: list[Any] = [kind.values.locate(x) for kind, x in pairs]
        except Exception:  # whatever is wrong with a value, an error could show it
            return None
        return None if None in positions else tuple(positions)

    def value(self, positions: Sequence[int]) -> tuple[Scalar, ...]:
        """Return the values of a record, from their positions; undoes :meth:`locate`."""
        pairs = zip(self.kinds, positions, strict=True)
        values = [kind.values.values[position] for kind, position in pairs]
        return tuple(value for value in values if not isinstance(value, tuple))

    def record(self, positions: Mapping[Variable, int]) -> Record:
        """Return the values of some attributes at some steps, from their positions."""
        constant: dict[str, Any] = {}
        by_step: dict[str, dict[int, Any]] = {}
        for (name, step), position in sorted(positions.items(), key=lambda item: item[0][1] or 0):
            value = self[name].values.values[position]
            if step is None:
                constant[name] = value
            else:
                by_step.setdefault(name, {})[step] = value
        found: Record = {**constant, **by_step}
        return {name: found[name] for name in self.names if name in found}

    def tree(self) -> dict[str, Any]:
        """Return the record as it is in a transcript file."""
        return {"attributes": {name: kind.tree() for name, kind in self._by_name.items()}}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Part(FiniteSet):
    """The values of one attribute, or the combinations of several, as a finite set.

    Combinations are tuples in the order in which the attributes are named, the last one fastest.
    """

    about: tuple[str, ...]
    sets: tuple[FiniteSet, ...]

    def __init__(self, about: tuple[str, ...], sets: Sequence[FiniteSet]) -> None:
        size = math.prod(map(len, sets))
        if size > MOST_COMBINATIONS:
            limit = f"a question can be about at most {MOST_COMBINATIONS:,}"
            raise InvalidInput(f"{join_names(about)} have {size:,} combinations; {limit}")
        names, values = (about, Combinations(sets)) if len(sets) > 1 else (None, sets[0].values)
        vars(self).update(about=about, sets=tuple(sets), names=names, values=values)

    def __repr__(self) -> str:
        return f"Part({join_names(self.about)}: {len(self)} values)"

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(map(len, self.sets))

    def called(self, alone: str) -> tuple[str, ...]:
        return self.about

    def part(self, about: tuple[str, ...]) -> Part:
        """Return the values that a query about these attributes sees."""
        for name in about:
            if name not in self.about:
                raise _no_attribute(name, self.about)
        if about == self.about:
            return self
        if about not in self._parts:
            self._parts[about] = Part(about, [self.sets[self.about.index(name)] for name in about])
        return self._parts[about]

    def indices_about(self, names: Sequence[str]) -> Indices:
        """Return the index of each combination among those of some of its attributes."""
        if not names:
            return np.zeros(len(self), dtype=np.intp)
        axes = np.unravel_index(np.arange(len(self)), self.sizes)
        named = [self.about.index(name) for name in names]
        sizes = [self.sizes[axis] for axis in named]
        return np.ravel_multi_index([axes[axis] for axis in named], sizes).astype(np.intp)

    @cached_property
    def _parts(self) -> dict[tuple[str, ...], Part]:
        return {}

    def tree(self) -> dict[str, Any]:
        raise InvalidInput("a part of a record is no domain of a file; its record is")

    def locate(self, value: Any) -> int | None:
        if len(self.sets) == 1:
            return self.sets[0].locate(value)
        try:
            coordinates = coordinates_of(value, self.about)
        except Exception:  # an error could show the value
            return None
        pairs = zip(self.sets, coordinates, strict=True)
        return self.position_of([values.locate(x) for values, x in pairs])

    def position_of(self, positions: Sequence[int | None]) -> int | None:
        """Return the position of a combination, from the positions of its values."""
        result = 0
        for size, position in zip(self.sizes, positions, strict=True):
            if position is None:
                return None
            result = result * size + position
        return result


class Combinations(Sequence[Value]):
    """All combinations of the values of some sets, worked out when they are asked for."""

    def __init__(self, sets: Sequence[FiniteSet]) -> None:
        self._lists = [finite_set.values for finite_set in sets]
        self._size = math.prod(map(len, sets))

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Value, ...]: ...
    def __getitem__(self, index: int | slice) -> Value | tuple[Value, ...]:
        remaining = range(self._size)[index]
        if isinstance(remaining, range):
            return tuple(self[position] for position in remaining)
        reversed_values: list[Any] = []
        for values in reversed(self._lists):
            remaining, position = divmod(remaining, len(values))
            reversed_values.append(values[position])
        return tuple(reversed(reversed_values))


_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """The limits of a changing attribute: the number of changes, or the size of each.

    With neither, the value at one step says nothing about any other step.
    """

    times: int | None = None
    max_step: Fraction | None = None

    def __post_init__(self) -> None:
        if self.times is not None and self.max_step is not None:
            raise InvalidInput("give either times or max_step, not both")
        if self.times is not None:
            with at("times"):
                times = read_integer(self.times, at_least=0)
                if times > _MOST_TIMES:
                    limit = f"{_MOST_TIMES:,}; leave it out for no limit"
                    raise InvalidInput(f"got {times:,}; expected at most {limit}")
                object.__setattr__(self, "times", times)
        if self.max_step is not None:
            with at("max_step"):
                max_step = exact(self.max_step)
                if max_step < 0:
                    raise InvalidInput("must not be negative")
                object.__setattr__(self, "max_step", max_step)

    def check(self, values: Sequence[Any]) -> None:
        """Refuse a largest step for values that are not ordered."""
        if self.max_step is not None and any(isinstance(value, str) for value in values):
            raise InvalidInput("requires numbers; the values have labels", "max_step")

    @property
    def limited(self) -> bool:
        """True if the value at one step says something about the value at another."""
        return self.times is not None or self.max_step is not None

    def __str__(self) -> str:
        if self.times is not None:
            return f", times={self.times}"
        return "" if self.max_step is None else f", max_step={decimal_text(self.max_step)}"

    def tree(self) -> dict[str, float | Fraction]:
        """Return the limits as they are in a transcript file."""
        if self.times is not None:
            return {"times": float(self.times)}
        return {} if self.max_step is None else {"max_step": self.max_step}


@dataclass(frozen=True, slots=True)
class Changing:
    """The values of an attribute that may change. :func:`changing` makes one."""

    values: Any
    change: Change


def changing(
    values: Any, *, times: int | None = None, max_step: ExactLike | None = None
) -> Changing:
    """Declare an attribute of :class:`Attributes` whose value may change from step to step.

    By default it may change at every step, and the losses of different steps add up. That is
    right for all subjects. Either limit is public and fixed before the first response. A session
    whose value changes more often answers for the last value that the limit allows, and never says
    so.

    Args:
        values: The values of the attribute: a list, or :func:`integers`.
        times: The largest number of changes of any subject.
        max_step: The largest change of a number between two consecutive steps.

    Raises:
        InvalidInput: Both limits are given, or ``max_step`` with labels.

    >>> import expost as xp
    >>> xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"], times=2))
    Attributes(region=2 values, smokes=changing[2 values, times=2])
    """
    limits: dict[str, Any] = {"times": times, "max_step": max_step}
    return Changing(values, Change(**limits))
