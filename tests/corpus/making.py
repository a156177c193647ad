"""The cases, drawn by their names and written by hand."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from corpus.by_hand import cases_by_hand
from corpus.cases import Case, Command
from support.random_documents import (
    BOX_SHAPES,
    FAMILIES,
    FAMILIES_WITH_DELTA,
    SET_SHAPES,
    Domain,
    Tree,
    as_text,
    choose,
    decides,
    draw_domain,
    draw_query,
    draw_transcript,
    families_on,
    list_filters,
    points_inside,
)

__all__ = ["all_cases"]

_FILE, _QUERY, _PROOF = "subject.json", "query.json", "proof.json"


def all_cases() -> Iterator[Case]:
    """Yield every case of the corpus, in order."""
    yield from cases_by_hand()
    yield from _families_on_sets()
    yield from _families_on_boxes()
    yield from _filters_on_boxes()
    yield from _tables()
    yield from _priors()
    yield from _clients()


def _possible_families(shape: str) -> list[str]:
    """List the families of which there are queries on some domains of a shape."""
    domains = [draw_domain(Random(f"{shape} {index}"), shape) for index in range(40)]
    possible = {family for domain in domains for family in families_on(domain)}
    return [family for family in FAMILIES if family in possible]


def _filters_for(family: str) -> list[Tree | None]:
    return [guard for guard in list_filters() if decides(guard, family)]


def _families_on_sets() -> Iterator[Case]:
    for shape in SET_SHAPES:
        for family in _possible_families(shape):
            name = f"{shape}, {family}"
            random, guard = Random(name), choose(name, _filters_for(family))
            domain = draw_domain(random, shape, family)
            tree, query = _draw_files(random, domain, family, guard, (0, 1, 2, 3, 4, 6))
            files = {_FILE: as_text(tree), _QUERY: as_text(query)}
            yield Case(name, files, _commands(name, tree))


def _families_on_boxes() -> Iterator[Case]:
    for shape in BOX_SHAPES:
        for family in _possible_families(shape):
            name = f"{shape}, {family}"
            yield _case_on_box(name, shape, family, choose(name, _filters_for(family)))


def _filters_on_boxes() -> Iterator[Case]:
    for guard in list_filters():
        name = f"a box under {as_text(guard)}"
        shape = choose(name, BOX_SHAPES)
        families = [family for family in _possible_families(shape) if decides(guard, family)]
        yield _case_on_box(name, shape, choose(name, families), guard)


def _case_on_box(name: str, shape: str, family: str, guard: Tree | None) -> Case:
    random = Random(name)
    domain = draw_domain(random, shape)
    tree, query = _draw_files(random, domain, family, guard, (1, 2, 3, 4))
    files = {_FILE: as_text(tree), _QUERY: as_text(query)}
    points = points_inside(random, domain)
    within = {} if points is None else {_FILE: as_text({**tree, "domain": points})}
    return Case(name, files, _commands(name, tree), on_box=True, within=within)


def _draw_files(
    random: Random, domain: Domain, family: str, guard: Tree | None, lengths: Sequence[int]
) -> tuple[Tree, Tree]:
    """Draw a transcript of a family and perhaps of two more, and a next query."""
    families = [name for name in families_on(domain) if decides(guard, name)]
    queries = [draw_query(random, domain, [family])]
    queries += [draw_query(random, domain, families) for _ in range(random.randint(0, 2))]
    tree = draw_transcript(random, domain, queries, guard, random.choice(lengths))
    following = draw_query(random, domain, random.choice(([family], families)))
    return tree, following.tree


def _commands(name: str, tree: Tree) -> tuple[Command, ...]:
    """List the loss always, and two groups of other commands."""
    kinds = [exchange["query"]["kind"] for exchange in tree["exchanges"]]
    groups: list[list[Command]] = [[("expost", "loss", _FILE)]]
    groups.append([("expost", "explain", _FILE)])
    groups.append([("expost", "explain", _FILE, "--json")])
    proof: list[Command] = [("expost", "certify", _FILE, "-o", _PROOF)]
    if "gaussian" not in kinds:
        proof.append(("expost", "verify", _FILE, _PROOF))
        proof.append(("verify.py", _FILE, _PROOF))
    groups.append([(*command, "--json") for command in proof[:2]])
    groups.append(proof)
    budget = () if "filter" in tree else ("--epsilon-budget", "3", "--delta", "1e-6")
    delta = () if "delta" in tree.get("filter", {"delta": ""}) else ("--delta", "1e-5")
    if kinds:
        groups.append([("expost", "compare", _FILE, *budget, *delta)])
        groups.append([("expost", "compare", _FILE, "--json", *budget, *delta)])
    commands: list[Command] = [("expost", "loss", _FILE, "--json")]
    if "filter" in tree:
        commands.append(("expost", "decide", _FILE, "--query", _QUERY, "--json"))
        groups.append([("expost", "decide", _FILE, "--query", _QUERY)])
    for group in Random(f"commands of {name}").sample(groups, 2):
        commands += group
    return tuple(commands)


def _tables() -> Iterator[Case]:
    """Tables of several subjects' responses."""
    for shape in (*SET_SHAPES, "integer box"):
        for index in range(2):
            name = f"table {index} of {shape}"
            random = Random(name)
            domain = draw_domain(random, shape)
            families = families_on(domain)
            queries = {f"q{i}": draw_query(random, domain, families) for i in range(3)}
            lines = []
            for subject in ("ann", "bob", "zoë", "12"):
                for _ in range(random.randint(1, 4)):
                    query = random.choice(list(queries))
                    response = random.choice(queries[query].responses)
                    row = {"subject": subject, "query": query, "response": response}
                    lines.append(f"{as_text(row)}\n")
            trees = {query_id: query.tree for query_id, query in queries.items()}
            study = {"version": 1, "domain": domain.tree, "queries": trees}
            files = {"queries.json": as_text(study), "answers.jsonl": "".join(lines)}
            many: Command = (
                "expost", "loss", "--many", "answers.jsonl", "--queries", "queries.json",
            )  # fmt: skip
            commands: list[Command] = [many, (*many, "--json"), (*many, "-o", "losses.csv")]
            commands.append((*many, "-o", "losses.jsonl", "--json"))
            yield Case(name, files, tuple(commands), on_box=domain.on_box)


def _priors() -> Iterator[Case]:
    """What the responses did to somebody's confidence."""
    filters = [guard for guard in list_filters() if guard is None or "delta" not in guard]
    for guard in filters:
        for index in range(4):
            name = f"prior {index} under {as_text(guard)}"
            random = Random(name)
            domain = draw_domain(random, "points")
            families = [name for name in families_on(domain) if name not in FAMILIES_WITH_DELTA]
            queries = [draw_query(random, domain, families) for _ in range(2)]
            tree = draw_transcript(random, domain, queries, guard, random.randint(0, 4))
            part = domain.part()
            column = random.choice(("count", "probability"))
            weights = [random.randint(0, 4) for _ in part.values]
            weights[0] += 1
            shares = [f"{w}/{sum(weights)}" if column == "probability" else w for w in weights]
            rows = [[*point, share] for point, share in zip(part.values, shares, strict=True)]
            prior = _as_csv([side.name for side in part.sides] + [column], rows)
            side = random.choice(part.sides)
            middle = (side.low + side.high) // 2
            coordinate = f"`{side.name}`" if " " in side.name else side.name
            statement = random.choice(
                (
                    f"{coordinate} >= {middle}",
                    f"not {coordinate} == {side.low}",
                    f"2 * {coordinate} - 1 < {middle} or {coordinate} == 8",
                )
            )
            base: Command = ("expost", "explain", _FILE, "--prior", "prior.csv")
            base = (*base, "--statement", statement)
            page: Command = (*base, "--html", "page.html", "--date", "2026-11-17")
            files = {_FILE: as_text(tree), "prior.csv": prior}
            yield Case(name, files, (base, (*base, "--json"), page))


def _clients() -> Iterator[Case]:
    """Clients that answer with any possible response."""
    for shape in ("labels", "mixed", "integers", "numbers", "points"):
        # Each possible result of Laplace or Gaussian noise gets a probability: that takes minutes.
        families = [x for x in _possible_families(shape) if x not in ("gaussian", "laplace")]
        for index in range(5):
            name = f"client {index} on {shape}"
            random = Random(name)
            domain = draw_domain(random, shape)
            query = draw_query(random, domain, families)
            part = domain.part()
            names = [side.name for side in part.sides] if shape == "points" else ["input"]
            rows = []
            for row in range(random.choice((6, 40))):
                value = random.choice(part.values)
                cells = value if isinstance(value, list) else [value]
                rows.append([*cells, random.choice(query.responses), f"s{row // 2}"])
            files = {
                "pairs.csv": _as_csv([*names, "output", "subject"], rows),
                "claim.json": as_text(query.tree),
                "domain.json": as_text(domain.tree),
            }
            check: Command = ("expost", "check-client", "pairs.csv", "--query", "claim.json")
            check = (*check, "--domain", "domain.json")
            options = random.choice(((), ("--permanent",), ("--confidence", "0.5")))
            yield Case(name, files, (check, (*check, *options, "--json")))


def _as_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Write a table, in which a list is JSON."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([as_text(cell) if isinstance(cell, list) else cell for cell in row])
    return text.getvalue()
