"""Whole games against filters with levels: small records, a few queries, and every analyst.

A filter is asked through files, so that the library and a device play the same games.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import expost as xp
from expost.device import device
from expost.domains import domain_from_json
from expost.filters import filter_from_json
from expost.queries import query_from_json
from support.level_decisions import LEVELS, draw_level, read
from support.protected_pairs import (
    Accepts,
    Attribute,
    Findings,
    History,
    Question,
    Study,
    channel,
    play,
)
from support.random_documents import Tree, as_text

__all__ = ["KINDS", "LevelGame", "by_device", "by_library", "draw_level_game"]

KINDS = ("basic", "simplified", "bayesian")
MOST_RECORDS = 64


@dataclass(frozen=True)
class LevelGame:
    """A study, a filter, and queries, each of which may be asked so many times."""

    study: Study
    filter: Tree
    menu: tuple[Question, ...]
    times: tuple[int, ...]

    @property
    def domain(self) -> Tree:
        attributes: Tree = {}
        for name, attribute in self.study.attributes.items():
            values = list(range(attribute.size))
            attributes[name] = {"changing": values} if attribute.changing else values
        return {"attributes": attributes}

    @property
    def queries(self) -> list[Tree]:
        return [tree_of(question) for question in self.menu]

    def of_kind(self, kind: str) -> LevelGame:
        """Return the game with the pure filters replaced by others of a kind."""
        filter_ = {**self.filter, "kind": kind}
        if "filters" in self.filter:
            filter_ = {
                "kind": "all",
                "filters": [{**x, "kind": kind} for x in self.filter["filters"]],
            }
        return LevelGame(self.study, filter_, self.menu, self.times)

    def play(self, accepts: Accepts) -> Findings:
        return play(self.study, self.filter, self.menu, self.times, accepts)


def tree_of(question: Question) -> Tree:
    """Return a question as a channel of a file."""
    rows = [[str(chance) for chance in row] for row in zip(*question.columns, strict=True)]
    tree: Tree = {"kind": "channel", "responses": list(range(len(rows[0]))), "probabilities": rows}
    return {**tree, "about": list(question.about), **({"at": question.at} if question.at else {})}


def draw_level_game(random: Random) -> LevelGame:
    """Draw a game with up to three attributes and three steps."""
    kinds = random.sample(LEVELS, random.choice([1, 1, 1, 2]))
    study = draw_study(random, changes="steps" in kinds)
    levels = [draw_level(random, study.attributes, kind) for kind in kinds]
    filters = [
        {
            "kind": "bayesian",
            "ratio": random.choice(["2", "3", "4", "9/2", "6", "9"]),
            **({"protects": level} if level else {}),
        }
        for level in levels
    ]
    menu = tuple(draw_question(random, study) for _ in range(random.randint(2, 3)))
    times = tuple(random.randint(1, 3) for _ in menu)
    filter_ = filters[0] if len(filters) == 1 else {"kind": "all", "filters": filters}
    return LevelGame(study, filter_, menu, times)


def draw_study(random: Random, *, changes: bool) -> Study:
    while True:
        attributes = {
            name: Attribute(random.choice([2, 2, 3]), random.random() < 0.6)
            for name in ("a", "b", "c")[: random.randint(1, 3)]
        }
        study = Study(attributes, random.randint(1, 3))
        if changes and not any(attribute.changing for attribute in attributes.values()):
            continue
        size = 1
        for name, _ in study.cells:
            size *= attributes[name].size
        if 2 <= size <= MOST_RECORDS:
            return study


def draw_question(random: Random, study: Study) -> Question:
    """Draw a query of two or three responses; each row is a permutation of the same weights."""
    names = random.sample(list(study.attributes), random.randint(1, len(study.attributes)))
    size = 1
    for name in names:
        size *= study.attributes[name].size
    weights = random.choice([[1, 2], [1, 3], [1, 1, 2], [1, 2, 3]])
    rows: list[list[int | str | Any]] = [random.sample(weights, len(weights)) for _ in range(size)]
    changing = any(study.attributes[name].changing for name in names)
    return channel(names, random.randint(1, study.steps) if changing else None, rows)


def by_library(game: LevelGame) -> Accepts:
    """Return the decisions of the library."""
    domain = domain_from_json(read(game.domain))
    guard = filter_from_json(read(game.filter))
    queries = [query_from_json(read(tree)) for tree in game.queries]

    @cache
    def odometer(history: History) -> xp.Odometer:
        if not history:
            return xp.Odometer(xp.Transcript(domain))
        query, response = history[-1]
        return odometer(history[:-1]).add(queries[query], response)

    return lambda history, query: guard.accepts(odometer(history), queries[query])


def by_device(game: LevelGame) -> Accepts:
    """Return the decisions of ``device.py``, each by an account of its own."""
    domain = device.Domain(device.parse(as_text(game.domain)))
    guard = device.Filter.read(device.parse(as_text(game.filter)), domain)
    shared: dict[str, device.CompiledQuery] = {}
    first = device.Account(domain, shared)
    queries = [
        first.compiled(device.Query.read(device.parse(as_text(tree)))) for tree in game.queries
    ]

    def accepts(history: History, query: int) -> bool:
        account = device.Account(domain, shared)
        for earlier, response in history:
            account.add(queries[earlier], response)
        return device.decide(guard, account, queries[query])

    return accepts
