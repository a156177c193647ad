"""What a traceback with local variables shows of a draw that was interrupted: nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

import pytest

import expost as xp
from expost.queries import Query
from support.stack_frames import in_package

FOUR = xp.FiniteSet(range(4))
BOX = xp.Box(age=(10, 100), sex=xp.integers(0, 1))
WEIGHTS = {"age": 0.01, "sex": 0.5}
VALUES: dict[xp.FiniteSet | xp.Box, list[Any]] = {
    FOUR: [1, 3],
    BOX: [{"age": 20, "sex": 0}, {"age": 80, "sex": 1}],
}
ON_FOUR: list[Query] = [
    xp.randomized_response(epsilon="0.7"),
    xp.perturbation([0, 0.1, 0.7, 1], epsilon=1),
    xp.channel([["1/3", "2/3"], ["1/7", "6/7"], ["1/2", "1/2"], ["1/4", "3/4"]]),
    xp.unary_encoding(variant="symmetric", epsilon="0.7"),
    xp.subset_selection(size=2, epsilon="0.7"),
    xp.local_hashing(seed="5eed", buckets=3, epsilon="0.7"),
    xp.hadamard_response(order=8, epsilon="0.7"),
    xp.geometric(range=(1, 5), sensitivity=3, epsilon="0.7"),
    xp.exponential_mechanism([[0, 1], [1, 0], [0, 0], [1, 1]], sensitivity=1, epsilon="0.7"),
]
ON_BOX: list[Query] = [
    xp.linear(WEIGHTS, range=(0, 2), epsilon="0.7"),
    xp.logistic(WEIGHTS, epsilon="0.7"),
    xp.probit(WEIGHTS, epsilon="0.7"),
    xp.queries.duchi(WEIGHTS, range=(0, 2), epsilon="0.7"),
    xp.laplace(WEIGHTS, range=(0, 2), grid=1, epsilon="7"),
    xp.gaussian(WEIGHTS, range=(0, 2), grid=1, sigma=2),
    xp.piecewise(WEIGHTS, range=(0, 2), grid="0.1", epsilon="0.7"),
]
CASES = [(FOUR, query) for query in ON_FOUR] + [(BOX, query) for query in ON_BOX]


class Interrupt(BaseException):
    """As a user would send it, in the middle of anything."""


class Failing:
    """A source that fails after its own source has failed."""

    def below(self, limit: int) -> int:
        try:
            raise OSError("no randomness")
        except OSError as error:
            raise RuntimeError("no numbers") from error


@contextmanager
def interrupted_at(line: int, *within: str) -> Iterator[None]:
    """Interrupt at the given line that is run inside of functions of ours with these names."""
    depth = seen = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal depth, seen
        if event == "line" and depth:
            seen += 1
            if seen == line:
                raise Interrupt
        elif event == "return" and frame.f_code.co_name in within:
            depth -= 1
        return inside

    def enters(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal depth
        if not in_package(frame.f_code.co_filename):
            return None
        depth += frame.f_code.co_name in within
        return inside

    known = sys.gettrace()
    sys.settrace(enters)
    try:
        yield
    finally:
        sys.settrace(known)


def _frames(error: BaseException) -> list[tuple[str, str]]:
    """Every function of ours in the tracebacks of an error, and its local variables."""
    found: list[tuple[str, str]] = []
    left: list[BaseException | None] = [error]
    for each in left:
        if each is None:
            continue
        left += [each.__cause__, each.__context__]
        trace: TracebackType | None = each.__traceback__
        while trace is not None:
            frame: FrameType | None = trace.tb_frame
            # Also those who called, for a frame leads to them.
            while frame is not None and in_package(frame.f_code.co_filename):
                shown = re.sub("0x[0-9a-f]+", "", repr(frame.f_locals))
                found.append((frame.f_code.co_name, shown))
                frame = frame.f_back
            trace = trace.tb_next
    return found


def _session(domain: xp.FiniteSet | xp.Box, value: Any, source: Any = None) -> xp.Session:
    # How it decides is not what is looked at, but it has to answer every query here.
    guard = xp.ApproximateFilter(1000, "1e-5", xp.filters.Renyi(8))
    return xp.Session(domain, value, filter=guard, source=source or xp.sampling.InsecureSource(1))


@pytest.mark.parametrize(("domain", "query"), CASES, ids=[query.kind for _, query in CASES])
def test_a_draw_that_is_interrupted_anywhere_shows_the_same_for_every_value(
    domain: xp.FiniteSet | xp.Box, query: Query
) -> None:
    _session(domain, VALUES[domain][0]).ask(query)  # what is worked out once is there now
    line, ended = 1, False
    while not ended:
        seen = []
        for value in VALUES[domain]:
            subject = _session(domain, value)
            try:
                with interrupted_at(line, "pmf", "draw"):
                    subject.ask(query)
                ended = True
            except Interrupt as error:
                seen.append(_frames(error))
        assert ended or (seen[0] == seen[1] and seen[0])
        line += 1 + line // 20  # all of the first ones, and then some of the others
    assert line > 5


@pytest.mark.parametrize(("domain", "query"), CASES, ids=[query.kind for _, query in CASES])
def test_a_source_that_fails_shows_the_same_for_every_value(
    domain: xp.FiniteSet | xp.Box, query: Query
) -> None:
    seen = []
    for value in VALUES[domain]:
        subject = _session(domain, value, Failing())
        with pytest.raises(RuntimeError, match="no numbers") as caught:
            subject.ask(query)
        assert len(subject.transcript) == 0
        seen.append(_frames(caught.value))
    assert seen[0] == seen[1] != []
    assert {name for name, _ in seen[0]} <= {"ask", "wrapper"}


@pytest.mark.parametrize("domain", VALUES, ids=["set", "box"])
def test_looking_for_a_value_that_is_interrupted_shows_nothing(
    domain: xp.FiniteSet | xp.Box,
) -> None:
    for line in range(1, 12 if domain.sides else 9):
        seen = []
        for value in VALUES[domain]:
            with pytest.raises(Interrupt) as caught, interrupted_at(line, "locate"):
                _session(domain, value)
            frames = [frame for frame in _frames(caught.value) if frame[0] != "_session"]
            seen.append(frames)
        assert seen[0] == seen[1] != []
