"""How the value of an attribute may change from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from expost.errors import InvalidInput, at
from expost.files.reading import whole
from expost.numbers import ExactLike, decimal_text, exact

__all__ = ["Change", "Changing", "changing"]

_MOST_TIMES = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """What may happen between two steps: at most so many changes in all, or steps of some size.

    With neither, the value at one step says nothing about any other step.
    """

    times: int | None = None
    max_step: Fraction | None = None

    def __post_init__(self) -> None:
        if self.times is not None and self.max_step is not None:
            raise InvalidInput("give either times or max_step, not both")
        if self.times is not None:
            with at("times"):
                times = whole(self.times, at_least=0)
                if times > _MOST_TIMES:
                    raise InvalidInput(
                        f"must be at most {_MOST_TIMES:,}; leave it out for no limit"
                    )
                object.__setattr__(self, "times", times)
        if self.max_step is not None:
            with at("max_step"):
                max_step = exact(self.max_step)
                if max_step < 0:
                    raise InvalidInput("must not be negative")
                object.__setattr__(self, "max_step", max_step)

    @classmethod
    def read(cls, times: Any = None, max_step: Any = None) -> Change:
        """The limits as a person writes them."""
        return cls(times, max_step)

    def check(self, values: Sequence[Any]) -> None:
        """Refuse a largest step for values that are not ordered."""
        if self.max_step is not None and any(isinstance(value, str) for value in values):
            raise InvalidInput("a largest step needs numbers, and there are labels", "max_step")

    @property
    def limited(self) -> bool:
        """Whether the value at one step says something about the value at another."""
        return self.times is not None or self.max_step is not None

    def __str__(self) -> str:
        if self.times is not None:
            return f", times={self.times}"
        return "" if self.max_step is None else f", max_step={decimal_text(self.max_step)}"

    def tree(self) -> dict[str, float | Fraction]:
        """The limits as they are in a transcript file."""
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
    """An attribute of :class:`Attributes` whose value may change from step to step.

    By default it may change at every step, and the losses of different steps add up: that is
    right for everybody. ``times`` is the largest number of changes of any subject, and ``max_step``
    the largest change between two steps that follow each other, for numbers. Either limit is fixed
    before the first response and public. A session whose value changes more often goes on with
    the last value that the limit allows, and never says so.

    >>> import expost as xp
    >>> xp.Attributes(region=["north", "south"], smokes=xp.changing(["no", "yes"], times=2))
    Attributes(region=2 values, smokes=changing[2 values, times=2])
    """
    return Changing(values, Change.read(times, max_step))
