"""The subjects of a ledger by their names. Numbers never change, so what is known stays right."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expost.answers import Subject
from expost.errors import InvalidInput
from expost.ledger.backend import Backend

__all__ = ["People", "written_name"]

Ints = NDArray[np.int64]

# With more names than this, all are read at once.
_MANY = 512


def written_name(subject: Subject) -> str:
    """A name as rows have it: its JSON."""
    return json.dumps(subject)


class People:
    """Names and numbers, as far as they were needed."""

    def __init__(self) -> None:
        self._numbers: dict[Subject, int] = {}
        self._names: list[Subject] = []
        """Of all up to some number, once they were read."""
        self._looked_up: dict[int, Subject] = {}
        """Of those who were looked up one by one."""

    def known(self, names: Sequence[Subject]) -> bool:
        """Whether the numbers of all of these were read already."""
        return all(name in self._numbers for name in names)

    def numbers(self, backend: Backend, names: Sequence[Subject]) -> Ints:
        """The numbers of subjects; 0 for nobody."""
        known = self._numbers
        found = [known.get(name, 0) for name in names]
        missing = [place for place, number in enumerate(found) if not number] if 0 in found else []
        if len(missing) > _MANY:
            self.names(backend)
            found = [known.get(name, 0) for name in names]
        elif missing:
            looked_up = backend.numbers([written_name(names[place]) for place in missing])
            for place, number in zip(missing, looked_up, strict=True):
                found[place] = number
                if number:
                    known[names[place]] = number
                    self._looked_up[number] = names[place]
        return np.array(found, dtype=np.int64)

    def names(self, backend: Backend) -> list[Subject]:
        """The names of all, in the order of their numbers."""
        found = backend.subjects(len(self._names))
        new = json.loads(f"[{','.join([name for _, name in found])}]")
        self._numbers.update(zip(new, [number for number, _ in found], strict=True))
        self._names += new
        return self._names

    def name(self, backend: Backend, number: int) -> Subject:
        """The name of one of them."""
        if number in self._looked_up:
            return self._looked_up[number]
        known = self._names if number <= len(self._names) else self.names(backend)
        return known[number - 1]

    def check(self, numbers: Ints) -> None:
        """Refuse names that nobody has."""
        if not numbers.all():
            row = int(np.argmin(numbers)) + 1
            raise InvalidInput("nobody in the ledger is called so", f"subjects: row {row}")
