"""The cases, drawn from a seed and written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from corpus.by_hand import cases_by_hand
from corpus.cases import Case, Command
from corpus.drawing import (
    Place,
    Tree,
    a_box,
    a_finite_set,
    a_query,
    document,
    filters,
    inside,
    kinds_on,
    transcript,
)

__all__ = ["all_cases"]

_SHAPES = ("labels", "integers", "points", "numbers")
_BOXES = ("integers", "reals", "mixed", "plain")
_FILE, _QUERY, _PROOF = "subject.json", "query.json", "proof.json"
_GAUSSIAN = ("gaussian", "channel with a delta")


def all_cases() -> Iterator[Case]:
    """Every case of the corpus, in order."""
    yield from cases_by_hand()
    yield from _on_sets(Random(1), 96)
    yield from _on_boxes(Random(2), 40)
    yield from _many(Random(3), 12)
    yield from _priors(Random(4), 16)
    yield from _clients(Random(5), 20)
    yield from _of_classes(Random(6), 8)


def _on_sets(random: Random, number: int) -> Iterator[Case]:
    guards = filters()
    for index in range(number):
        shape, guard = _SHAPES[index % 4], guards[index % len(guards)]
        place = a_finite_set(random, shape)
        tree, query = _drawn(random, place, guard, index)
        commands = _commands(random, index, tree)
        files = {_FILE: document(tree), _QUERY: document(query)}
        yield Case(f"set {index}, of {shape}", files, commands)


def _of_classes(random: Random, number: int) -> Iterator[Case]:
    """Channels with a row for each class of values."""
    guards = filters()
    for index in range(number):
        shape, guard = _SHAPES[index % 4], guards[index % len(guards)]
        place, kind = a_finite_set(random, shape), "channel of classes"
        tree = transcript(random, place, [kind, "channel"], guard, index % 4)
        files = {_FILE: document(tree), _QUERY: document(a_query(random, place, kind)[0])}
        yield Case(f"classes {index}, of {shape}", files, _commands(random, index, tree))


def _on_boxes(random: Random, number: int) -> Iterator[Case]:
    guards = filters()
    for index in range(number):
        shape, guard = _BOXES[index % 4], guards[index % len(guards)]
        place = a_box(random, shape)
        tree, query = _drawn(random, place, guard, index)
        commands = _commands(random, index, tree)
        if index > 20:  # it may take many searches
            commands = tuple(command for command in commands if command[1] != "compare")
        files = {_FILE: document(tree), _QUERY: document(query)}
        points = inside(random, place)
        within = {} if points is None else {_FILE: document({**tree, "domain": points})}
        yield Case(f"box {index}, {shape}", files, commands, on_box=True, within=within)


def _drawn(random: Random, place: Place, guard: Tree | None, index: int) -> tuple[Tree, Tree]:
    """A transcript that has each family in turn, and a next query."""
    kinds = kinds_on(place)
    if guard is not None and "delta" in guard:
        kinds = kinds if place.on_box else [*kinds, "channel with a delta"]
    elif guard is not None:
        kinds = [kind for kind in kinds if kind not in _GAUSSIAN]
    first = kinds[(index // 4) % len(kinds)]
    others = random.sample(kinds, min(len(kinds), random.randint(0, 2)))
    length = random.choice((0, 1, 2, 3, 4, 6)) if not place.on_box else random.choice((1, 2, 3, 4))
    tree = transcript(random, place, [first, *others], guard, length)
    query, _ = a_query(random, place, random.choice([first, *kinds]))
    return tree, query


def _commands(random: Random, index: int, tree: Tree) -> tuple[Command, ...]:
    """The loss always, and some of the other commands, in turn."""
    found: list[Command] = [("expost", "loss", _FILE, "--json")]
    asked = [exchange["query"]["kind"] for exchange in tree["exchanges"]]
    some: list[list[Command]] = [[("expost", "loss", _FILE)]]
    some.append([("expost", "explain", _FILE)])
    some.append([("expost", "explain", _FILE, "--json")])
    proof: list[Command] = [("expost", "certify", _FILE, "-o", _PROOF)]
    if "gaussian" not in asked:
        proof.append(("expost", "verify", _FILE, _PROOF))
        proof.append(("verify.py", _FILE, _PROOF))
    some.append([(*command, "--json") for command in proof[:2]])
    some.append(proof)
    budget = () if "filter" in tree else ("--epsilon-budget", "3", "--delta", "1e-6")
    delta = () if "delta" in tree.get("filter", {"delta": ""}) else ("--delta", "1e-5")
    if asked:
        some.append([("expost", "compare", _FILE, *budget, *delta)])
        some.append([("expost", "compare", _FILE, "--json", *budget, *delta)])
    if "filter" in tree:
        found.append(("expost", "decide", _FILE, "--query", _QUERY, "--json"))
        some.append([("expost", "decide", _FILE, "--query", _QUERY)])
    for group in random.sample(some, 2):
        found += group
    return tuple(found)


def _many(random: Random, number: int) -> Iterator[Case]:
    """Tables of what several subjects answered."""
    for index in range(number):
        on_box = index % 4 == 3
        place = a_box(random, "integers") if on_box else a_finite_set(random, _SHAPES[index % 4])
        kinds = random.sample(kinds_on(place), 3)
        queries = {f"q{i}": a_query(random, place, kind) for i, kind in enumerate(kinds)}
        rows: list[tuple[str, str, Any]] = []
        for subject in ("ann", "bob", "zoë", "12"):
            for _ in range(random.randint(1, 4)):
                name = random.choice(list(queries))
                rows.append((subject, name, random.choice(queries[name][1])))
        study = {"version": 1, "domain": place.tree}
        asked = {name: query for name, (query, _) in queries.items()}
        lines = [
            document(dict(zip(("subject", "query", "response"), r, strict=True))) for r in rows
        ]
        files = {
            "queries.json": document({**study, "queries": asked}),
            "answers.jsonl": "".join(f"{line}\n" for line in lines),
        }
        many: Command = ("expost", "loss", "--many", "answers.jsonl", "--queries", "queries.json")
        commands: list[Command] = [many, (*many, "--json"), (*many, "-o", "losses.csv")]
        commands.append((*many, "-o", "losses.jsonl", "--json"))
        yield Case(f"many {index}", files, tuple(commands), on_box=on_box)


def _priors(random: Random, number: int) -> Iterator[Case]:
    """What the answers did to somebody's confidence."""
    guards = filters()
    for index in range(number):
        guard = guards[index % 4]
        place = a_finite_set(random, "points")
        kinds = [kind for kind in kinds_on(place) if kind not in _GAUSSIAN]
        tree = transcript(random, place, random.sample(kinds, 2), guard, random.randint(0, 4))
        names = [side.name for side in place.sides]
        column = random.choice(("count", "probability"))
        weights = [random.randint(0, 4) for _ in place.values]
        weights[0] += 1
        shown = [f"{w}/{sum(weights)}" if column == "probability" else str(w) for w in weights]
        rows = zip(place.values, shown, strict=True)
        table = [",".join([*map(str, value), weight]) for value, weight in rows]
        prior = "\n".join([",".join([*names, column]), *table, ""])
        side = random.choice(place.sides)
        middle = (side.low + side.high) // 2
        name = f"`{side.name}`" if " " in side.name else side.name
        statement = random.choice(
            (
                f"{name} >= {middle}",
                f"not {name} == {side.low}",
                f"2 * {name} - 1 < {middle} or {name} == 8",
            )
        )
        base: Command = ("expost", "explain", _FILE, "--prior", "prior.csv")
        base = (*base, "--statement", statement)
        page: Command = (*base, "--html", "page.html", "--date", "2026-11-17")
        commands = (base, (*base, "--json"), page)
        yield Case(f"prior {index}", {_FILE: document(tree), "prior.csv": prior}, commands)


def _clients(random: Random, number: int) -> Iterator[Case]:
    """Clients that answer anything, or what is asked for."""
    for index in range(number):
        place = a_finite_set(random, _SHAPES[index % 4])
        # Of all that Laplace noise can be, a probability each is worked out: that takes minutes.
        kinds = [kind for kind in kinds_on(place) if kind not in ("gaussian", "laplace")]
        query, responses = a_query(random, place, kinds[index % len(kinds)])
        names = [side.name for side in place.sides] if "points" in place.tree else ["input"]
        table = [",".join([*names, "output", "subject"])]
        for row in range(random.choice((6, 40))):
            value = random.choice(place.values)
            cells = value if isinstance(value, list) else [value]
            output = random.choice(responses)
            table.append(",".join(map(_cell, [*cells, output, f"s{row // 2}"])))
        files = {
            "pairs.csv": "\n".join([*table, ""]),
            "claim.json": document(query),
            "domain.json": document(place.tree),
        }
        base: Command = ("expost", "check-client", "pairs.csv", "--query", "claim.json")
        base = (*base, "--domain", "domain.json")
        further = random.choice(((), ("--permanent",), ("--confidence", "0.5")))
        yield Case(f"client {index}", files, (base, (*base, *further, "--json")))


def _cell(value: Any) -> str:
    """As in a table: a list is JSON, and what has a comma is quoted."""
    text = document(value) if isinstance(value, list) else str(value)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
