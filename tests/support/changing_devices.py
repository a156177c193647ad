"""Devices of subjects whose values change, right and wrong, against all adaptive analysts.

A true sequence may change more often than its domain allows. A device answers for something else
then, and what an analyst sees must not tell two true sequences apart by more than the budget.
Imports nothing of the package; whether a question is accepted is asked of who uses this.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

Record = tuple[int, ...]
Records = tuple[Record, ...]
"""The record at each step, from step 1 on."""
Event = tuple[int, int | None]
"""A question by its number, and its response; None if there was none."""
Path = tuple[Event, ...]
Accepts = Callable[[Path, int], bool]


@dataclass(frozen=True)
class Question:
    """About some places of the record at a step: a row of weights for each of their values."""

    about: tuple[int, ...]
    step: int
    rows: dict[Record, tuple[int, ...]]

    def likelihood(self, record: Record, response: int) -> Fraction:
        row = self.rows[tuple(record[place] for place in self.about)]
        return Fraction(row[response], sum(row))

    @property
    def responses(self) -> range:
        return range(len(next(iter(self.rows.values()))))


Answered = Callable[[Records, Sequence[int]], Sequence[Record | None]]
"""The records that a device answers for when these steps have been asked about, in this order.

None is for a step at which it is silent.
"""


def eager(limits: Sequence[int | None]) -> Answered:
    """Counts the changes of each place at every step, and keeps a value when they are used up."""

    def answered(true: Records, asked: Sequence[int]) -> list[Record | None]:
        records, used = [true[0]], [0] * len(limits)
        for record in true[1:]:
            now = list(records[-1])
            for place, limit in enumerate(limits):
                if record[place] != now[place] and (limit is None or used[place] < limit):
                    now[place] = record[place]
                    used[place] += 1
            records.append(tuple(now))
        return list(records)

    return answered


def nearest(step: int) -> Answered:
    """Goes towards the true value by at most so much, for records of one number."""

    def answered(true: Records, asked: Sequence[int]) -> list[Record | None]:
        values = [true[0][0]]
        for (wanted,) in true[1:]:
            values.append(min(max(wanted, values[-1] - step), values[-1] + step))
        return [(value,) for value in values]

    return answered


def unfrozen(true: Records, asked: Sequence[int]) -> list[Record | None]:
    """Wrong: answers for what is true."""
    return list(true)


def lazy(limit: int) -> Answered:
    """Wrong: counts changes from one asked step to the next that is asked, for one place."""

    def answered(true: Records, asked: Sequence[int]) -> list[Record | None]:
        result: list[Record | None] = [None] * len(true)
        last, used = None, 0
        for step in dict.fromkeys(asked):
            record = true[step - 1]
            if last is not None and record != last:
                record, used = (record, used + 1) if used < limit else (last, used)
            result[step - 1] = last = record
        return result

    return answered


def silent(inner: Answered) -> Answered:
    """Wrong: gives no answer where it would have to answer for something that is not true."""

    def answered(true: Records, asked: Sequence[int]) -> list[Record | None]:
        pairs = zip(inner(true, asked), true, strict=True)
        return [frozen if frozen == record else None for frozen, record in pairs]

    return answered


@dataclass(frozen=True)
class Game:
    """What may be asked, of whom, and how often; the order counts if that is said."""

    questions: tuple[Question, ...]
    sequences: tuple[Records, ...]
    most: int
    ordered: bool = False

    def worst(self, device: Answered, accepts: Accepts, allowed: Callable[[Path], bool]) -> float:
        """The largest ratio of the probabilities that two true sequences give to what is seen."""
        return max(_ratio(chances) for chances in self._seen(device, accepts, allowed))

    def _seen(
        self, device: Answered, accepts: Accepts, allowed: Callable[[Path], bool]
    ) -> Iterator[list[Fraction]]:
        reached: dict[Path, list[Fraction]] = {(): [Fraction(1)] * len(self.sequences)}
        for _ in range(self.most):
            longer: dict[Path, list[Fraction]] = {}
            for path, chances in reached.items():
                for number, question in enumerate(self.questions):
                    told = tuple(event for event in path if event[1] is not None)
                    if not allowed((*path, (number, None))) or not accepts(told, number):
                        continue
                    for response in (*question.responses, None):
                        after = (*path, (number, response))
                        key = after if self.ordered else tuple(sorted(after, key=str))
                        if key not in longer:
                            longer[key] = self._after(device, after, chances)
            # What has no probability for anybody is not seen.
            reached = {path: chances for path, chances in longer.items() if any(chances)}
            yield from reached.values()

    def _after(self, device: Answered, path: Path, chances: list[Fraction]) -> list[Fraction]:
        number, response = path[-1]
        question = self.questions[number]
        asked = [self.questions[each].step for each, _ in path]
        result = []
        for chance, true in zip(chances, self.sequences, strict=True):
            record = device(true, asked)[question.step - 1]
            if record is None or response is None:
                result.append(chance * (record is None and response is None))
            else:
                result.append(chance * question.likelihood(record, response))
        return result


def _ratio(chances: list[Fraction]) -> float:
    """Their largest ratio; all that it is compared with are integers that doubles hold."""
    return math.inf if not min(chances) else float(max(chances) / min(chances))


def in_order(questions: Sequence[Question]) -> Callable[[Path], bool]:
    """Whether no step is asked about after a later one."""

    def allowed(path: Path) -> bool:
        steps = [questions[number].step for number, _ in path]
        return steps == sorted(steps)

    return allowed


def in_any_order(path: Path) -> bool:
    """Whatever is asked when."""
    return True
