"""The exceptions that expost raises, and where in the input an error is."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from decimal import Decimal
from types import UnionType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from expost._format import shorten

if TYPE_CHECKING:
    from expost.filters._decision import Decision
    from expost.numbers import Enclosure, Nats

__all__ = [
    "BudgetExceeded",
    "ExpostError",
    "InvalidInput",
    "LargeBudgetWarning",
    "OutsideDomain",
    "TinyScaleWarning",
    "at",
    "did_you_mean",
    "expect",
    "make_printable",
    "read_at",
    "unknown_name",
    "warn_caller",
]

P = ParamSpec("P")
T = TypeVar("T")


# Comparing names takes time that grows with the product of their lengths.
_LONGEST_NAME = 60


class ExpostError(Exception):
    """The base class of all errors that expost raises on purpose.

    Catch this to handle them all. No message contains a subject's value.
    """


class LargeBudgetWarning(UserWarning):
    """A budget is so large that it is probably a mistake: it protects hardly anything.

    Python shows it once for each place in a program that makes such a filter.
    ``warnings.simplefilter("ignore", LargeBudgetWarning)`` turns it off.
    """


class TinyScaleWarning(UserWarning):
    """A fitted step divides a column by a scale that is tiny next to the others.

    The column hardly varied, so the scale may be no more than a rounding error.
    """


class InvalidInput(ExpostError, ValueError):
    """The input cannot be used. The message is one line that says where and why.

    ``location`` is where in the input the problem is, and ``reason`` what is wrong there.

    >>> import expost as xp
    >>> try:
    ...     xp.FiniteSet(["no", "yes", "no"])
    ... except xp.InvalidInput as error:
    ...     print(error)
    values[2]: 'no' appears twice
    """

    #: All entries that cannot be used, where the message names only the first one.
    details: tuple[object, ...] = ()

    def __init__(self, reason: str, location: str = "") -> None:
        self.reason = reason
        self.location = location
        super().__init__(make_printable(f"{location}: {reason}" if location else reason))

    def within(self, location: str, joint: str = ".") -> Self:
        """Return this error with ``location`` in front of its own, as ``with at(location)`` does.

        Loops over thousands of entries use it, because ``with`` takes time even without an error.
        """
        if self.location:
            # An index follows its list directly: exchanges[3].query
            index = joint == "." and self.location.startswith("[")
            location += self.location if index else joint + self.location
        return type(self)(self.reason, location)


class OutsideDomain(InvalidInput):
    """The subject's value is not in the domain. The value is never part of the error.

    >>> import expost as xp
    >>> xp.Session(xp.FiniteSet(["no", "yes"]), "maybe", filter=xp.BayesianFilter(epsilon=1))
    Traceback (most recent call last):
      ...
    expost.errors.OutsideDomain: the value is outside the domain (and is not shown here)
    """


class BudgetExceeded(ExpostError):
    """A query was refused: nothing was sampled, recorded or spent, and the session continues.

    Its numbers are computed when they are read, because on a box each one is a search.

    >>> import expost as xp
    >>> session = xp.Session(
    ...     xp.FiniteSet(["no", "yes"]), "yes", filter=xp.BayesianFilter(epsilon=1)
    ... )
    >>> try:
    ...     session.ask(xp.randomized_response(epsilon=2))
    ... except xp.BudgetExceeded as refusal:
    ...     refusal.loss_at_worst.upper > 1, float(refusal.fits)
    (True, 1.0)
    """

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        super().__init__(decision)

    @property
    def loss(self) -> Enclosure:
        """The loss or cost that counts against the budget before the query."""
        return self.decision.loss

    @property
    def loss_at_worst(self) -> Enclosure:
        """The loss or cost that would count against the budget after the query, at worst."""
        return self.decision.loss_at_worst

    @property
    def budget(self) -> Nats:
        """The filter's budget."""
        return self.decision.budget

    @property
    def undecided(self) -> bool:
        """True if the query was refused only because a search reached its limit of nodes."""
        return self.decision.undecided

    @property
    def fits(self) -> Decimal | None:
        """The largest epsilon found with which the same query is accepted; None if none was.

        For a saturating query, it is the largest cap at which a new one is accepted.
        """
        return self.decision.fits

    def tree(self) -> dict[str, Any]:
        """Return the refusal as JSON. This computes everything that it shows."""
        return self.decision.refusal()

    def __str__(self) -> str:
        return self.decision.refusal_message


def make_printable(message: str) -> str:
    """Replace line breaks and control codes, which names in a file may contain.

    >>> make_printable("a\\x1b[2Jb")
    'a?[2Jb'
    """
    return "".join(c if c.isprintable() else "?" for c in message)


def expect(
    value: object, kind: type | UnionType | tuple[type, ...], expected: str, location: str = ""
) -> None:
    """Refuse an argument of another type. The error names the type and never shows the value.

    >>> expect("Ann", int, "a number")
    Traceback (most recent call last):
      ...
    expost.errors.InvalidInput: must be a number, not str
    """
    if not isinstance(value, kind):
        raise InvalidInput(f"must be {expected}, not {type(value).__name__}", location)


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """Return a hint for an unknown name: the valid name that looks most like it, if any.

    >>> did_you_mean("randomised_response", ["linear", "randomized_response"])
    "; did you mean 'randomized_response'?"
    >>> did_you_mean("x", ["linear"])
    ''
    """
    from difflib import get_close_matches  # only where something is wrong

    if not isinstance(name, str) or len(name) > _LONGEST_NAME:
        return ""
    # Whatever the case: "Age" is more likely "age" than anything else.
    spelled = {name.casefold(): name for name in candidates if len(name) <= _LONGEST_NAME}
    folded = name.strip().casefold()
    matches = get_close_matches(folded, spelled, n=1, cutoff=0.75)
    # Two letters that changed places are much of a short name: "nwe".
    matches = matches or [candidate for candidate in spelled if sorted(candidate) == sorted(folded)]
    return f"; did you mean {spelled[matches[0]]!r}?" if matches else ""


def unknown_name(kind: str, name: object, candidates: Iterable[str]) -> str:
    """Say that a name is unknown: with the one that looks most like it, or else the first few.

    >>> unknown_name("query", "smoke", ["smokes"]), unknown_name("query", "x", ["smokes"])
    ("unknown query 'smoke'; did you mean 'smokes'?", "unknown query 'x'; known: smokes")
    """
    names = list(candidates)
    listed = ", ".join([shorten(name, 20) for name in names[:8]] + ["…"] * (len(names) > 8))
    hint = did_you_mean(name, names) or f"; known: {listed or 'none'}"
    return f"unknown {kind} {shorten(str(name))!r}{hint}"


class at:  # noqa: N801 - a word before a location, as in "with at(location):"
    """Put ``location`` in front of the location of an :class:`InvalidInput` raised inside.

    >>> with at("exchanges[3]"), at("query"):
    ...     raise InvalidInput("is missing", "epsilon")
    Traceback (most recent call last):
      ...
    expost.errors.InvalidInput: exchanges[3].query.epsilon: is missing
    """

    # Not a generator: a file has a dozen places to each exchange, and hardly ever an error.
    __slots__ = ("_joint", "_location")

    def __init__(self, location: str, joint: str = ".") -> None:
        self._location = location
        self._joint = joint

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, InvalidInput):
            raise error.within(self._location, self._joint) from None


def read_at(location: str, read: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return what a reader makes of its arguments; an error names the location.

    >>> read_at("epsilon", float, "0.5")
    0.5
    """
    with at(location):
        return read(*args, **options)


def warn_caller(text: str, category: type[Warning]) -> None:
    """Warn at the line of the program that called expost."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("expost."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
