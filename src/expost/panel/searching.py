"""Searches on a box for many subjects: once for every tally, perhaps in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

from expost.errors import InvalidInput
from expost.loss import Odometer
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["Search", "Task"]

# With fewer searches than this another process takes longer to start than they do.
_ENOUGH = 32


@dataclass(frozen=True, slots=True)
class Task:
    """A search for the result of a method or property of an odometer, by its name."""

    transcript: Transcript
    method: str
    query: Query | None = None
    budget: Nats | None = None

    def run(self, effort: Effort) -> Enclosure:
        """Return bounds of the result."""
        result: Any = getattr(Odometer(self.transcript, effort=effort), self.method)
        if self.query is not None:
            result = result(self.query, 1, self.budget).loss
        assert isinstance(result, Enclosure)
        return result


@dataclass(frozen=True, slots=True)
class Search:
    """How hard to search on a box, and in how many processes.

    ``progress`` is called with the number of searches done and their total.

    >>> Search(processes=2).processes
    2
    """

    effort: Effort = field(default_factory=Effort)
    processes: int = 1
    progress: Callable[[int, int], None] | None = field(default=None, repr=False)
    batched: bool = field(default=True, repr=False)
    """Whether the losses of many tallies of linear queries are computed at once.

    This is faster, but the last digits depend on which subjects are computed together.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.processes, int) or self.processes < 1:
            raise InvalidInput("must be an integer from 1 on", "processes")

    def all(self, tasks: Sequence[Task]) -> list[Enclosure]:
        """What each of some searches found. They do not depend on each other."""
        found = []
        for number, each in enumerate(self._done(tasks), 1):
            found.append(each)
            if self.progress is not None:
                self.progress(number, len(tasks))
        return found

    def _done(self, tasks: Sequence[Task]) -> Iterator[Enclosure]:
        if self.processes == 1 or len(tasks) < _ENOUGH:
            return (task.run(self.effort) for task in tasks)
        size = 1 + len(tasks) // (8 * self.processes)
        pool = _pool(self.processes)
        return pool.map(Task.run, tasks, [self.effort] * len(tasks), chunksize=size)


@lru_cache(maxsize=1)
def _pool(processes: int) -> ProcessPoolExecutor:
    """Processes that stay for the next question, for each takes seconds to start."""
    # A forked process would have the locks of threads that are not there.
    return ProcessPoolExecutor(processes, get_context("spawn"))
