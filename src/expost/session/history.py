"""The records of a subject with attributes, one for each step so far.

A session answers for the frozen records, which stay within the limits of the domain. The last true
record is kept too: what is not named at the next step stays as it truly is.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from expost.domains import Attributes, Frozen, some
from expost.domains.finite import coordinates_of
from expost.errors import InvalidInput, OutsideDomain, expect
from expost.session.secret import Secret, Single, unseen
from expost.transcript import Transcript

__all__ = ["History", "Places", "located"]

Places = tuple[int, ...]
"""Where the values of a record are, attribute by attribute."""


class History(Single):
    """The records so far. None of them is shown, nor whether what is answered for is true."""

    __slots__ = ("_domain", "_steps")

    def __init__(self, domain: Attributes) -> None:
        self._domain = domain
        # The true record and the frozen one, together: an interrupt leaves both or neither.
        self._steps: list[tuple[Places, Frozen]] = []

    @property
    def step(self) -> int:
        """The step at which the subject is, from 1."""
        return len(self._steps)

    def place(self, step: int | None) -> Places:
        """The record that is answered for at a step; without one, for what does not change."""
        return self._steps[0 if step is None else step - 1][1].places

    def add(self, record: Any) -> None:
        """Go on with the record at the next step, or start with that at the first."""
        self._go_on(located(self._domain, record))

    @unseen
    def next(self, changes: Secret) -> None:
        """Go on to the next step with the new values, which come as two mappings."""
        if not self._domain.changes:
            raise InvalidInput("no attribute of this domain changes, so there is no next step")
        with self._turn():
            places = self._changed(*changes.taken())
            self._keep(places)
            self._go_on(places)

    def catch_up(self) -> None:
        """See what others added; here nobody does."""

    def check(self, transcript: Transcript) -> None:
        """Refuse a transcript in which a step was asked about that has not come here."""
        latest = max((each.query.step or 0 for each in transcript.exchanges), default=0)
        if latest > self.step:
            raise InvalidInput(
                f"the history is behind its transcript: it ends at step {self.step}, and step "
                f"{latest} was asked about already"
            )

    def _turn(self) -> AbstractContextManager[None]:
        """While a step is added, all others wait."""
        return nullcontext()

    def _keep(self, places: Places) -> None:
        """Make the record at the next step last, before anything can be answered about it."""

    def _go_on(self, places: Places) -> None:
        # The same is done whether or not the frozen record is the true one.
        if self._steps:
            true, frozen = self._steps[-1]
            self._check_constants(true, places)
            self._steps.append((places, frozen.next(places)))
        else:
            self._steps.append((places, Frozen.first(self._domain, places)))

    def _check_constants(self, before: Places, now: Places) -> None:
        each = zip(self._domain.names, self._domain.kinds, before, now, strict=True)
        for name, kind, old, new in each:
            if kind.change is None and old != new:
                raise OutsideDomain(f"{name} differs from the step before, and it does not change")

    def _changed(self, given: Any, named: dict[str, Any]) -> Places:
        expect({} if given is None else given, Mapping, "the attributes that changed")
        places = list(self._steps[-1][0])
        for name, value in {**(given or {}), **named}.items():
            # A name that is not known is not shown: it may be a value by mistake.
            if name not in self._domain.names:
                raise InvalidInput(
                    "there is no attribute of a name that was given (and is not shown here); "
                    f"there are {some(self._domain.names)}"
                )
            if self._domain[name].change is None:
                raise InvalidInput("this attribute does not change", name)
            (at,) = self._domain.places([name])
            places[at] = _place(self._domain, name, value)
        return tuple(places)


def located(domain: Attributes, record: Any) -> Places:
    """Where the values of a record are. An error names an attribute, and never a value."""
    try:
        values = coordinates_of(record, domain.names)
    except Exception:  # whatever is wrong with a record, an error could show it
        raise OutsideDomain(
            f"a record has values for {some(domain.names)}, and for nothing else (what was given is"
            " not shown here)"
        ) from None
    return tuple(_place(domain, *each) for each in zip(domain.names, values, strict=True))


def _place(domain: Attributes, name: str, value: Any) -> int:
    place = domain[name].values.locate(value)
    if place is None:
        raise OutsideDomain(f"the value of {name} is outside the domain (and is not shown here)")
    return place
