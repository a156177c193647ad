"""Searches on a box for many subjects: once for every tally, perhaps in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from typing import Any

from expost.domains import Domain
from expost.errors import InvalidInput
from expost.loss import Odometer
from expost.numbers import Enclosure, Nats
from expost.queries import Query
from expost.solver import Effort
from expost.transcript import Transcript

__all__ = ["Search", "Task", "odometer_of"]

Given = tuple[tuple[Query, int], ...]
"""Queries, and the positions of responses."""

# With fewer searches than this another process takes longer to start than they do.
_ENOUGH = 32


@dataclass(frozen=True, slots=True)
class Task:
    """What is searched for: a number of one odometer, named as its method is."""

    domain: Domain
    given: Given
    what: str
    query: Query | None = None
    budget: Nats | None = None

    def done(self, effort: Effort) -> Enclosure:
        """Search for it."""
        odometer = odometer_of(self.domain, self.given, effort)
        found: Any = getattr(odometer, self.what)
        if self.query is None:
            assert isinstance(found, Enclosure)
            return found
        loss: Enclosure = found(self.query, 1, self.budget).loss
        return loss


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
            return (task.done(self.effort) for task in tasks)
        size = 1 + len(tasks) // (8 * self.processes)
        pool = _pool(self.processes)
        return pool.map(Task.done, tasks, [self.effort] * len(tasks), chunksize=size)


@lru_cache(maxsize=1)
def _pool(processes: int) -> ProcessPoolExecutor:
    """Processes that stay for the next question, for each takes seconds to start."""
    # A forked process would have the locks of threads that are not there.
    return ProcessPoolExecutor(processes, get_context("spawn"))


def odometer_of(domain: Domain, given: Iterable[tuple[Query, int]], effort: Effort) -> Odometer:
    """The odometer of some responses."""
    transcript = Transcript(domain)
    for query, position in given:
        transcript = transcript.answered(query, position)
    return Odometer(transcript, effort=effort)
