"""Random cases of every check, with ties and margins that only exact arithmetic can tell."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

import expost as xp
from conformance.by_library import answer, read, transcript_of
from expost.domains import domain_from_json
from expost.files.canonical import readable_tree, value_tree
from expost.queries import query_from_json
from expost.sampling import InsecureSource, draw
from support.level_decisions import draw_level, draw_level_decision
from support.random_documents import (
    DEVICE_FAMILIES,
    Domain,
    Part,
    Tree,
    choose,
    draw_attributes,
    draw_finite_domain,
    draw_query,
    draw_query_on_values,
    draw_subject,
    draw_value,
)

__all__ = [
    "chains",
    "decisions",
    "decisions_about_changes",
    "decisions_about_distances",
    "decisions_by_levels",
    "decisions_by_several_filters",
    "decisions_in_one_place",
    "decisions_with_noise",
    "draws",
    "frozen",
    "ids",
    "ids_beyond_the_basic_plane",
    "policies",
    "policies_beyond_the_basic_plane",
    "policies_with_levels",
    "weights",
    "weights_of_scores",
    "with_answers",
]

FILTERS = ("basic", "simplified", "bayesian")
FAMILIES_OF_PAIRS = (
    "randomized_response", "local_hashing", "unary_encoding", "hadamard_response",
    "subset_selection",
)  # fmt: skip
"""Families that tell two values apart fully or not at all."""


def with_answers(check: str, given: Tree) -> Tree:
    """Make a case, with what the library says about it."""
    case = {"check": check, "given": given}
    return {**case, "expected": answer(case)}


def draw_query_of_pairs(rng: Random, size: int) -> Tree:
    """Draw a query that tells values apart fully or not at all."""
    query = draw_query_on_values(rng, Part(tuple(range(size))), FAMILIES_OF_PAIRS)
    return {**query.tree, "epsilon": rng.choice(["0.1", "1", "2.5"])}


def draw_study(rng: Random, steps: int = 3) -> tuple[Domain, Tree]:
    """Draw a domain and a query, each family as often as any other."""
    family = choose(rng.getrandbits(64), DEVICE_FAMILIES)
    domain = draw_finite_domain(rng, family)
    return domain, draw_query(rng, domain, [family], steps=steps).tree


def draw_exchanges(
    rng: Random, domain: Domain, count: int, query: Tree | None = None
) -> list[Tree]:
    """Draw some queries, and responses of a subject to them."""
    library_domain, value = domain_from_json(read(domain.tree)), draw_value(rng, domain)
    menu = [query] if query else [draw_query(rng, domain).tree for _ in range(rng.randint(1, 3))]
    exchanges = []
    for _ in range(count):
        tree = rng.choice(menu)
        likelihood = query_from_json(read(tree)).on(library_domain)
        source = InsecureSource(rng.getrandbits(64))
        position = draw(likelihood.pmf(library_domain.locate(value)), source)
        response = readable_tree(value_tree(likelihood.responses[position]))
        exchanges.append({"query": tree, "response": response})
    return exchanges


def decisions(rng: Random, longest: int = 6) -> Tree:
    """Draw a decision. The budget is often the worst case of the query, or just beside that."""
    return _decision(rng, draw_finite_domain(rng), longest)


def decisions_about_changes(rng: Random) -> Tree:
    """Draw a decision where a value may change, after queries about steps in any order."""
    return _decision(rng, draw_attributes(rng, changing=True), longest=8)


def decisions_about_distances(rng: Random) -> Tree:
    """Draw a decision where a number changes by little from step to step, about steps far apart."""
    values = rng.sample([0, 1, 2, 3, 0.5], rng.randint(3, 4))
    changing = {"changing": values, "max_step": rng.choice(["1", "0.5"])}
    domain = Domain({"attributes": {"x": changing, "region": ["n", "s"]}})
    queries = [
        {**draw_query_of_pairs(rng, len(values)), "about": ["x"], "at": step} for step in (1, 4, 4)
    ]
    exchanges = [
        exchange for query in queries for exchange in draw_exchanges(rng, domain, 1, query)
    ]
    return _with_budget(rng, domain, "bayesian", exchanges, rng.choice(queries))


def decisions_by_levels(rng: Random) -> Tree:
    """Draw a decision by a filter that protects some pairs of records."""
    return _given_with_level(rng, lambda guard: "protects" in guard, conjunction=0)


def decisions_by_several_filters(rng: Random) -> Tree:
    """Draw a decision by filters that must all accept."""
    return _given_with_level(rng, lambda guard: guard["kind"] == "all", conjunction=0.7)


def _given_with_level(rng: Random, suits: Callable[[Tree], bool], *, conjunction: float) -> Tree:
    while True:
        case = draw_level_decision(Random(rng.getrandbits(64)), conjunction=conjunction)
        if suits(case.filter) and 1 < len(case.exchanges) < 6:
            break
    exchanges = list(case.exchanges)
    return {
        "domain": case.domain,
        "filter": case.filter,
        "exchanges": exchanges,
        "query": case.query,
    }


def decisions_with_noise(rng: Random) -> Tree:
    """Draw a decision about noisy integers: either end of the range may be the worst response."""
    width = rng.randint(2, 4)
    domain = Domain({"values": list(range(width))})
    query = {
        "kind": "geometric",
        "range": [rng.randint(-1, 0), width - rng.randint(0, 1)],
        "sensitivity": width,
        "epsilon": rng.choice(["0.5", "1"]),
    }
    return _decision(rng, domain, 3, query)


def decisions_in_one_place(rng: Random) -> Tree:
    """Draw a decision where responses are most and least likely at one value of the query.

    Then the loss and the epsilon do not simply add up, and the query may add nothing.
    """
    first = rng.sample(["a", "b", "c"], rng.randint(2, 3))
    domain = Domain({"attributes": {"x": first, "y": ["no", "yes"]}})
    rows = [["0.8", "0.2"], ["0.1", "0.9"]]
    rows += [[f"0.{p}", f"0.{10 - p}"] for p in (rng.randint(2, 7) for _ in range(2 * len(first)))]
    channel: Tree = {
        "kind": "channel",
        "responses": ["yes", "no"],
        "probabilities": rows[: 2 * len(first)],
        "about": ["x", "y"],
    }
    exchanges = [{"query": channel, "response": "yes"}] * rng.randint(1, 2)
    query = {**draw_query_of_pairs(rng, len(first)), "about": ["x"]}
    return _with_budget(rng, domain, "bayesian", exchanges, query)


def _decision(rng: Random, domain: Domain, longest: int, query: Tree | None = None) -> Tree:
    kind = rng.choice(FILTERS)
    exchanges = draw_exchanges(rng, domain, rng.randint(0, longest), query)
    again = exchanges and rng.random() < 0.5
    following = exchanges[-1]["query"] if again else query or draw_query(rng, domain).tree
    return _with_budget(rng, domain, kind, exchanges, following)


def _with_budget(
    rng: Random, domain: Domain, kind: str, exchanges: list[Tree], query: Tree
) -> Tree:
    given: Tree = {
        "domain": domain.tree,
        "filter": {"kind": kind, "epsilon": "1"},
        "exchanges": exchanges,
        "query": query,
    }
    return {**given, "filter": _budget(rng, given)}


def _budget(rng: Random, given: Tree) -> Tree:
    kind = given["filter"]["kind"]
    transcript = transcript_of(given)
    query = query_from_json(read(given["query"]))
    worst = transcript.required_filter.worst_case(xp.Odometer(transcript), query)
    assert worst.exact is not None
    exact = worst.exact()
    choice = rng.randrange(5)
    if exact.ratio is None or choice == 0:
        return {"kind": kind, "epsilon": rng.choice(["0.5", "1", "2.5", "4", "0.3"])}
    if exact.rational:
        limit = exact.rational + Fraction(rng.choice([-1, 0, 0, 1]), 10**20)
        return {"kind": kind, "epsilon": str(limit if limit > 0 else exact.rational)}
    if exact.ratio <= 1 or exact.ratio.denominator.bit_length() > 2500:
        return {"kind": kind, "epsilon": rng.choice(["1e-20", "0.1"])}
    if choice < 3:
        # A tie, or one part in 2^64 more or less.
        ratio = exact.ratio * (1 + Fraction(rng.choice([-1, 0, 0, 1]), 2**64))
        return {"kind": kind, "ratio": str(ratio if ratio > 1 else exact.ratio)}
    up, down = (Context(prec=40, rounding=how) for how in (ROUND_CEILING, ROUND_FLOOR))
    top, bottom = Decimal(exact.ratio.numerator), Decimal(exact.ratio.denominator)
    near = Context(prec=60).subtract(Context(prec=60).ln(top), Context(prec=60).ln(bottom))
    epsilon = rng.choice([up.plus(near), down.plus(near), Context(prec=8).plus(near)])
    return {"kind": kind, "epsilon": f"{epsilon:f}" if epsilon > 0 else "0.1"}


def weights_of_scores(rng: Random) -> Tree:
    """Draw scores where it matters in which order doubles are added."""
    names = rng.sample(["age", "sex", "größe", "b"], 3)
    rows = [[rng.choice([1, 0.1, 0.7, -3]) for _ in names] for _ in range(3)]
    rows = [row for k, row in enumerate(rows) if row not in rows[:k]]
    kind = rng.choice(["linear", "logistic"])
    fields = {
        "weights": {name: rng.choice([0.1, 0.2, 0.3, -0.7]) for name in names},
        "intercept": 0.1,
        "epsilon": "30.5",
    }
    clipped = {"range": [-3, 3], "clip": True} if kind == "linear" else {}
    return {
        "domain": {"points": {"names": names, "rows": rows}},
        "query": {"kind": kind, **fields, **clipped},
        "responses": [-3, 3] if clipped else [0, 1],
    }


def weights(rng: Random) -> Tree:
    """Draw some responses, of which the weights are asked."""
    domain, query = draw_study(rng)
    likelihood = query_from_json(read(query)).on(domain_from_json(read(domain.tree)))
    size = min(len(likelihood.responses), 1 << 20)
    positions = {rng.randrange(size) for _ in range(3)} | {0, size - 1}
    responses = [readable_tree(value_tree(likelihood.responses[k])) for k in sorted(positions)]
    return {"domain": domain.tree, "query": query, "responses": responses}


def draws(rng: Random) -> Tree:
    """Choose the bytes of a draw: any, or those of the integers next to where responses change."""
    domain, query = draw_study(rng, steps=1)
    value = draw_value(rng, domain)
    library_domain = domain_from_json(read(domain.tree))
    pmf = query_from_json(read(query)).on(library_domain).pmf(library_domain.locate(value))
    bits = pmf.total.bit_length()
    count = -(-bits // 8)
    uniform = rng.choice([0, pmf.total - 1, rng.randrange(pmf.total), _edge(rng, pmf)])
    bytes_of = (uniform << (8 * count - bits)).to_bytes(count, "big")
    # What is not below the total is drawn again; bits beyond those that are needed do not matter.
    if (1 << bits) > pmf.total and rng.random() < 0.3:
        bytes_of = b"\xff" * count + bytes_of
    spare = rng.randrange(1 << (8 * count - bits))
    last = (int.from_bytes(bytes_of, "big") | spare).to_bytes(len(bytes_of), "big")
    return {"domain": domain.tree, "query": query, "value": value, "bytes": last.hex()}


def _edge(rng: Random, pmf: Any) -> int:
    """Find an integer at which the response changes, or the one before it."""
    low, high = 0, int(pmf.total) - 1
    if pmf.pick(low) == pmf.pick(high):
        return low
    while high - low > 1:
        middle = rng.randrange(low + 1, high) if rng.random() < 0.1 else (low + high) // 2
        if pmf.pick(middle) == pmf.pick(low):
            low = middle
        else:
            high = middle
    return rng.choice([low, high])


def ids(rng: Random) -> Tree:
    return {"query": draw_study(rng)[1]}


def policies(rng: Random) -> Tree:
    budget = rng.choice([{"epsilon": "2.50"}, {"ratio": "9/4"}, {"epsilon": "3/2"}])
    return {
        "policy": {
            "version": 1,
            "study": rng.choice(["Smoking in the north", "", "größer"]),
            "nonce": rng.randbytes(16).hex(),
            "domain": draw_finite_domain(rng).tree,
            "filter": {"kind": rng.choice(FILTERS), **budget},
        }
    }


def policies_with_levels(rng: Random) -> Tree:
    """Draw a policy whose filter protects some pairs of records, or consists of two filters."""
    given, labels = policies(rng), rng.sample(["region", "größe", "0x1", "b"], 2)
    attributes = {labels[0]: ["no", "yes"], labels[1]: {"changing": ["no", "yes"]}}
    level = draw_level(rng, attributes, rng.choice(["attributes", "groups", "steps"]))
    guard = {**given["policy"]["filter"], "protects": level}
    if rng.random() < 0.5:
        guard = {"kind": "all", "filters": [guard, given["policy"]["filter"]]}
    domain = {"attributes": attributes}
    return {"policy": {**given["policy"], "domain": domain, "filter": guard}}


def _names_beyond_the_basic_plane(rng: Random) -> list[str]:
    """Names that UTF-16 code units and code points put in different orders."""
    last, beyond = ["\ue000", "\uff5a", "\uffee"], ["\U00010000", "\U0001d54f", "\U0001f600"]
    names = [rng.choice(last), rng.choice(beyond), rng.choice(["b", "größe", "\ud7ff"])]
    rng.shuffle(names)
    return names


def ids_beyond_the_basic_plane(rng: Random) -> Tree:
    weights = {name: rng.choice([1, 0.5, -2]) for name in _names_beyond_the_basic_plane(rng)}
    query = {"kind": rng.choice(["linear", "logistic"]), "weights": weights}
    return {"query": {**query, "epsilon": rng.choice(["1", "1/3"])}}


def policies_beyond_the_basic_plane(rng: Random) -> Tree:
    attributes = {name: ["no", "yes"] for name in _names_beyond_the_basic_plane(rng)}
    given = policies(rng)
    return {"policy": {**given["policy"], "domain": {"attributes": attributes}}}


def chains(rng: Random) -> Tree:
    exchanges = [
        [query_from_json(read(exchange["query"])).content_id, exchange["response"]]
        for exchange in draw_exchanges(rng, draw_finite_domain(rng), rng.randint(0, 4))
    ]
    policy = rng.randbytes(32).hex()
    return {"policy": policy, "subject": draw_subject(rng), "exchanges": exchanges}


def frozen(rng: Random) -> Tree:
    domain = draw_attributes(rng, changing=rng.random() < 0.9)
    first = draw_value(rng, domain)
    changing = [
        name
        for name, tree in (domain.attributes or {}).items()
        if isinstance(tree, dict) and "changing" in tree
    ]
    records = [first]
    for _ in range(rng.randint(1, 5)):
        new = draw_value(rng, domain)
        records.append({**first, **{name: new[name] for name in changing}})
    return {"domain": domain.tree, "records": records}
