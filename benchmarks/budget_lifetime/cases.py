"""The settings that are compared: dimensions, epsilons, and analysts."""

from __future__ import annotations

from functools import partial

from examples.paper.streams import Stream

import expost as xp
from benchmarks.budget_lifetime import analysts
from benchmarks.budget_lifetime.asking import Case

__all__ = ["ANALYSTS", "DIMENSIONS", "EPSILONS", "by_analyst", "by_dimension", "by_epsilon"]

DIMENSIONS = {
    "linear": ("1", "2", "3", "5", "9", "15"),
    "logistic, weights up to 1": ("1", "2", "3", "5", "9", "15"),
    "logistic, weights up to 10": ("1", "2", "3", "5", "9", "15"),
}
EPSILONS = {
    "the same half": ("1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01"),
    "random halves": ("1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01"),
    "linear": ("1", "0.5", "0.2", "0.1"),
}
ANALYSTS = {
    "the same question": ("64 values", "1,024 values", "box"),
    "five questions in turn": ("64 values", "1,024 values", "box"),
    "random questions": ("64 values", "1,024 values", "box"),
    "the roomiest of 20": ("64 values", "1,024 values"),
    "unrelated facts in turn": ("64 values", "1,024 values", "box"),
    "an adversary": ("64 values", "1,024 values"),
}


def _stream(name: str, dimension: int = 9, epsilon: str = "0.1") -> Stream:
    scale = 10 if name.endswith("10") else 1
    return Stream(name, 0, "linear" if name == "linear" else "logistic", scale, dimension, epsilon)


def by_dimension(family: str, dimension: str) -> Case:
    """Random regressions on [-1, 1]^d, epsilon 0.1."""
    stream = _stream(family, int(dimension))
    analyst = partial(analysts.draw_question, stream.queries)
    return Case(f"{family} {dimension}", stream.box, analyst, most=200)


def by_epsilon(kind: str, epsilon: str) -> Case:
    """About 64 values, and linear queries on [-1, 1]^9."""
    name = f"{kind} {epsilon}"
    if kind == "linear":
        stream = _stream(kind, epsilon=epsilon)
        return Case(name, stream.box, partial(analysts.draw_question, stream.queries), most=1000)
    questions = analysts.Halves(64, epsilon).queries
    same, other = (
        partial(analysts.cycle_questions, 1, questions),
        partial(analysts.draw_question, questions),
    )
    analyst = same if kind == "the same half" else other
    return Case(name, xp.FiniteSet(range(64)), analyst, most=50_000)


def by_analyst(analyst: str, whom: str) -> Case:
    """Epsilon 0.1; on finite domains halves of the values, on [-1, 1]^9 linear queries."""
    size = {"64 values": 64, "1,024 values": 1024}.get(whom)
    stream = _stream("linear")
    domain = stream.box if size is None else xp.FiniteSet(range(size))
    questions = stream.queries if size is None else analysts.Halves(size).queries
    facts = analysts.coordinates(9) if size is None else analysts.bits(size)
    asks = {
        "the same question": partial(analysts.cycle_questions, 1, questions),
        "five questions in turn": partial(analysts.cycle_questions, 5, questions),
        "random questions": partial(analysts.draw_question, questions),
        "the roomiest of 20": partial(analysts.roomiest, 20, questions),
        "unrelated facts in turn": partial(analysts.in_turn, facts),
        "an adversary": partial(analysts.adversary, size or 0),
    }
    return Case(f"{analyst}, {whom}", domain, asks[analyst], runs=20 if size is None else 40)
