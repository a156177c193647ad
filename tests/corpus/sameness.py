"""Whether what a command gave is what it gave before.

On a finite set it is the same bytes. Only on a processor whose logarithms round otherwise than
where the corpus was made, doubles may be off by roundings. On a box losses are searched for, and
another search may end with other bounds. So there, and only there, this is what may differ:

- an enclosure: the new one meets the old one, is no wider than the gap if the old one was not, and
  its upper end is not below the loss at points of the box;
- what is made of one end of an enclosure, by no more than the gap, and a share in percent by as
  many points;
- the largest epsilon that fits, by 1 %;
- the two points that a loss is told by, if they are at least as far apart but for the gap;
- a proof, its length and its leaves: its loss is checked by the commands that come after it.

Words, decisions, counts and exit codes are the same. A sum of doubles may be off by its roundings.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from corpus.cases import Command, Outcome, Record

__all__ = ["HOW_TO_CHANGE", "differences", "roundings", "tree_differences"]

HOW_TO_CHANGE = (
    "If this is on purpose, run `PYTHONPATH=src:tests python -m corpus.make` and say why in the"
    " commit."
)

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?( %)?")
_ENDS = ("floor", "ceiling", "largest", "loss", "mean", "median", "remaining")
_OF_PROOFS = ("bytes", "leaves")
_GAP = 0.01
_LARGEST = 0.01
_ROUNDING = 1e-9
_TOLD_BY = "Far apart now"


def roundings() -> str:
    """Tells processors apart by how logarithms and exponentials are rounded on them."""
    x = np.linspace(0.001, 3, 10_001)
    return hashlib.sha256(np.log(x).tobytes() + np.exp(x).tobytes()).hexdigest()


def differences(
    kept: Record, command: Command, old: Outcome, new: Outcome, *, exact: bool = True
) -> Iterator[str]:
    """What is not as it was, in lines. ``exact`` is whether roundings are the same."""
    if old.code != new.code:
        yield f"exit code {new.code}, was {old.code}"
    pairs = [("standard output", old.out, new.out), ("standard error", old.err, new.err)]
    names = [*old.wrote, *(name for name in new.wrote if name not in old.wrote)]
    pairs += [(name, old.wrote.get(name, ""), new.wrote.get(name, "")) for name in names]
    for name, before, after in pairs:
        if before == after:
            continue
        problems: list[str] = []
        if kept.case.on_box or not exact:
            gap = kept.case.gap if kept.case.on_box else _ROUNDING
            problems = list(_problems(_Rules(gap, kept.at_least), command, name, before, after))
            if not problems:
                continue
        yield "\n".join([*_diff(name, before, after), *problems])


def tree_differences(old: Any, new: Any, *, on_box: bool, exact: bool = True) -> Iterator[str]:
    """The same of results that were never printed."""
    if on_box or not exact:
        yield from _Rules(_GAP if on_box else _ROUNDING, None).trees(old, new, "")
    elif old != new:
        before, after = (json.dumps(tree, ensure_ascii=False, indent=1) for tree in (old, new))
        yield from _diff("result", before, after)


def _diff(name: str, before: str, after: str) -> list[str]:
    old, new = before.splitlines(), after.splitlines()
    places = f"{name}, before", f"{name}, now"
    return list(difflib.unified_diff(old, new, *places, lineterm="", n=1))


def _problems(rules: _Rules, command: Command, name: str, before: str, after: str) -> Iterator[str]:
    if name == "proof.json":
        if not after:
            yield "there is no proof"
    elif name == "standard output" and "--json" in command and before and after:
        yield from rules.trees(json.loads(before), json.loads(after), "")
    else:
        yield from rules.texts(before, after)


class _Rules:
    """The rules above, at a gap and with a loss that no bound may be below."""

    def __init__(self, gap: float, at_least: float | None) -> None:
        self._gap = gap
        self._at_least = -math.inf if at_least is None else at_least

    def trees(self, old: Any, new: Any, place: str) -> Iterator[str]:
        """Compare two results, as JSON."""
        if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
            yield from self._objects(old, new, place)
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for index, (before, after) in enumerate(zip(old, new, strict=True)):
                yield from self.trees(before, after, f"{place}[{index}]")
        elif isinstance(old, float) and isinstance(new, float):
            if not math.isclose(old, new, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
                yield f"{place}: {new}, was {old}"
        elif old != new:
            yield f"{place}: {new}, was {old}"

    def _objects(self, old: dict[str, Any], new: dict[str, Any], place: str) -> Iterator[str]:
        if "lower" in old and "upper" in old:
            yield from self._enclosures(old, new, place)
        for name in old:
            where, before, after = f"{place}.{name}", old[name], new[name]
            if name in ("lower", "upper", *_OF_PROOFS):
                continue
            if name == "most_apart" and before and after:
                yield from self._apart(before, after, where)
            elif name in _ENDS and isinstance(before, float) and isinstance(after, float):
                yield from self._close(before, after, self._gap, where)
            elif name == "largest_epsilon" and before and after:
                numbers = float(before), float(after)
                yield from self._close(*numbers, _LARGEST * numbers[0], where)
            else:
                yield from self.trees(before, after, where)

    def _enclosures(self, old: dict[str, Any], new: dict[str, Any], place: str) -> Iterator[str]:
        low, high = float(old["lower"]), float(old["upper"])
        lower, upper = float(new["lower"]), float(new["upper"])
        if max(low, lower) > min(high, upper):
            yield f"{place}: {lower} to {upper} does not meet {low} to {high}"
        if high - low <= self._gap < upper - lower:
            yield f"{place}: {upper - lower} wide, and the gap is {self._gap}"
        if place == ".loss" and upper < self._at_least:
            yield f"{place}: at most {upper}, but at points of the box it is {self._at_least}"

    def _apart(self, old: dict[str, Any], new: dict[str, Any], place: str) -> Iterator[str]:
        if new["difference"] < old["difference"] - self._gap:
            yield f"{place}: {new['difference']} apart, was {old['difference']}"
        points = [[[type(x) for x in tree[key]] for key in ("likeliest", "unlikeliest")]
                  for tree in (old, new)]  # fmt: skip
        if points[0] != points[1]:
            yield f"{place}: other coordinates"
        rest = [{k: v for k, v in t.items() if k in ("others", "example")} for t in (old, new)]
        yield from self.trees(rest[0], rest[1], place)

    def _close(self, old: float, new: float, most: float, place: str) -> Iterator[str]:
        # What is shown has six digits, so of two that differ by the gap a little more.
        if old != new and not abs(old - new) <= most * (1 + 1e-6):
            yield f"{place}: {new}, was {old}"

    def texts(self, old: str, new: str) -> Iterator[str]:
        """Compare two texts: the same words, and numbers as above."""
        before, after = old.splitlines(), new.splitlines()
        if len(before) != len(after):
            yield f"{len(after)} lines, were {len(before)}"
            return
        told = False
        for number, (was, now) in enumerate(zip(before, after, strict=True), start=1):
            told = told or was.startswith(_TOLD_BY)
            if told:  # other points, but in the same words
                was, now = (re.sub(r"=[^,.]+(\.\d+)?", "=", line) for line in (was, now))
            if _words(was) != _words(now):
                yield f"line {number}: other words"
            elif not told and not was.startswith(("leaves ", "proof ")):
                yield from self._numbers(was, now, f"line {number}")

    def _numbers(self, old: str, new: str, place: str) -> Iterator[str]:
        for was, now in zip(_NUMBER.finditer(old), _NUMBER.finditer(new), strict=True):
            before, after = (float(found[0].removesuffix(" %")) for found in (was, now))
            most = 100 * self._gap if was[1] else self._gap
            if old.startswith("largest epsilon"):
                most = _LARGEST * before
            yield from self._close(before, after, most, place)


def _words(line: str) -> str:
    """A line without its numbers; how wide a column is depends on them."""
    return " ".join(_NUMBER.sub("#", line).split())
