"""The cases that are timed in two versions of the code: see ``beside``.

What is timed is what a user calls; a case is made ready once, and every run starts from there.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import expost as xp
from benchmarks import (
    consecutive_decisions,
    estimation,
    information,
    many_subjects,
    million_values,
    parsing,
    start_up,
)
from benchmarks.instances import Instance, draw, replay
from benchmarks.solver_cases import cases
from benchmarks.streams import BASE, Stream, ask_all

__all__ = ["Timed", "timed_cases"]

Timed = Callable[[], float]
"""Seconds of the processor for one run."""


def timed_cases() -> Iterator[tuple[str, Callable[[], Timed]]]:
    """Yield the names of cases, and functions that prepare them."""
    yield from _sets()
    yield from _populations()
    yield from _boxes()
    yield from _files()


def _sets() -> Iterator[tuple[str, Callable[[], Timed]]]:
    yield "a loss of two answers, set", lambda: _loss(_two_answers(xp.FiniteSet(["no", "yes"])))
    for name in ("perturbation", "channel"):
        yield f"a decision on a million values, {name}", partial(_on_a_million, name)
    for name, action in consecutive_decisions.CASES.items():
        if "OpenDP" not in name:
            yield (
                f"2,000 decisions, {name.removeprefix('expost, ')}",
                partial(_of, partial(action, 2000)),
            )


def _populations() -> Iterator[tuple[str, Callable[[], Timed]]]:
    yield "reading 400,000 answers", lambda: _of(_answers()[0])
    yield "losses of 20,000, set", lambda: _of(partial(xp.realized_losses, _answers()[1]))
    yield "losses of 10,000, linear", partial(_on_box, "linear", "linear", 10.0, 20, 10_000)
    yield "losses of 300, steep", partial(_on_box, "steep", "logistic", 10.0, 10, 300)
    yield "losses of 300, smooth", partial(_on_box, "smooth", "logistic", 1.0, 10, 300)
    for name, make_answers in (("unary", estimation._unary), ("repeated", estimation._repeated)):
        yield f"likeliest distribution, {name}", partial(_likeliest, make_answers)


def _boxes() -> Iterator[tuple[str, Callable[[], Timed]]]:
    yield "a loss of two answers, box", lambda: _loss(_two_answers(xp.Box([(-1, 1)] * 2)))
    extra = [("linear, d = 20, n = 50", draw("linear", "linear", n=50, d=20, scale=10, seed=1))]
    for label, instance in [*((case.label, case.instances[0]) for case in cases()), *extra]:
        yield f"a loss, {label}", partial(_solved, instance)
        yield f"from the file, {label}", partial(_from_file, instance)
    yield "a subject until refused, linear", lambda: _of(partial(information.subject, 2, 10, 1))
    yield "a decision after 40, smooth", _decision
    linear = replace(BASE, link="linear", budget="1", queries=200)
    for stream in (linear, replace(linear, d=30, epsilon="0.5"), replace(BASE, budget="1")):
        yield f"{stream.queries} asks and refusals, {stream}", partial(_asks, stream)


def _files() -> Iterator[tuple[str, Callable[[], Timed]]]:
    for name, document in parsing.documents():
        yield f"reading 100, {name}", partial(_of, partial(xp.Transcript.from_json, document), 3)
    yield "expost --help", lambda: partial(start_up.seconds, [start_up.COMMAND, "--help"])
    box = _two_answers(xp.Box([(-1, 1)] * 2))()
    yield "expost loss, set", lambda: _command("loss", start_up.TRANSCRIPT)
    yield "expost loss, box", lambda: _command("loss", json.loads(box.to_json()))


def _of(action: Callable[[], object], times: int = 1) -> Timed:
    def run() -> float:
        start = time.process_time()
        for _ in range(times):
            action()
        return time.process_time() - start

    return run


def _two_answers(domain: xp.FiniteSet | xp.Box) -> Callable[[], xp.Transcript]:
    """Prepare queries; return a function that builds a transcript from them."""
    queries: list[xp.queries.Query]
    if isinstance(domain, xp.Box):
        queries = [xp.logistic([3, -1], epsilon=1), xp.logistic([1, 2], epsilon="0.5")]
    else:
        queries = [xp.randomized_response(epsilon=1), xp.randomized_response(epsilon="0.5")]
    pairs = [(query, query.on(domain).responses[0]) for query in queries]

    def build() -> xp.Transcript:
        transcript = xp.Transcript(domain)
        for query, response in pairs:
            transcript = transcript.add(query, response)
        return transcript

    return build


def _loss(build: Callable[[], xp.Transcript]) -> Timed:
    return _of(lambda: xp.realized_loss(build()), 50)


def _on_a_million(name: str) -> Timed:
    size, generator = million_values.SIZE, np.random.default_rng(1)
    domain = xp.FiniteSet(range(size))
    odometer = xp.Odometer(xp.Transcript(domain))
    odometer = odometer.add(xp.perturbation(generator.random(size), epsilon=1), 1)
    first, second = generator.uniform(0.3, 0.6, size), generator.uniform(0.1, 0.3, size)
    query = (
        xp.perturbation(first, epsilon=1)
        if name == "perturbation"
        else xp.channel(np.stack([first, second, 1 - first - second], axis=1))
    )
    return _of(partial(xp.BayesianFilter(epsilon=4).decide, odometer, query))


def _answers() -> tuple[Callable[[], xp.Answers], xp.Answers]:
    domain, generator = xp.FiniteSet(range(16)), np.random.default_rng(1)
    queries = {f"q{i}": xp.randomized_response(epsilon=f"0.{i + 1:02d}") for i in range(20)}
    rows = many_subjects.table(generator.integers(0, 16, (20_000, 20)), list(queries))
    read = partial(xp.Answers, domain, queries, rows)
    return read, read()


def _on_box(name: str, link: Any, scale: float, n: int, subjects: int) -> Timed:
    instance = draw(name, link, n=n, d=9, scale=scale, seed=1)
    answers = many_subjects._answers(instance, many_subjects._responses(instance, subjects)[1])
    return _of(partial(xp.realized_losses, answers))


def _likeliest(make_answers: Callable[..., xp.Answers]) -> Timed:
    generator = np.random.default_rng(1)
    answers = make_answers(generator, generator.integers(0, 50, 20_000), 50)
    return _of(partial(xp.estimation.estimate_distribution, answers))


def _solved(instance: Instance) -> Timed:
    exchanges = instance.exchanges()
    return _of(lambda: xp.realized_loss(replay(exchanges), gap=instance.gap))


def _from_file(instance: Instance) -> Timed:
    document = instance.transcript().to_json()
    return _of(lambda: xp.realized_loss(xp.Transcript.from_json(document), gap=instance.gap))


def _decision() -> Timed:
    longer = draw("smooth", "logistic", n=41, d=9, scale=1, seed=1)
    transcript, query = longer.first(40).transcript(), longer.questions[-1].query()
    return _of(lambda: xp.BayesianFilter(epsilon=2).decide(xp.Odometer(transcript), query))


def _asks(stream: Stream) -> Timed:
    return _of(lambda: ask_all(stream, 1))


def _command(name: str, tree: Any) -> Timed:
    file = Path(tempfile.mkdtemp()) / "transcript.json"
    file.write_text(json.dumps(tree))
    return partial(start_up.seconds, [start_up.COMMAND, name, str(file)])


if __name__ == "__main__":
    # A name on each line of standard input; the seconds of one run on each line of the output.
    ready: dict[str, Timed] = {}
    making = dict(timed_cases())
    print(json.dumps(list(making)), flush=True)
    for line in sys.stdin:
        wanted = line.strip()
        if wanted not in ready:
            ready = {wanted: making[wanted]()}
            ready[wanted]()
        print(ready[wanted](), flush=True)
