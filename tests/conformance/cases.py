"""Random cases of every check, with ties and margins that only exact arithmetic can tell."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from random import Random
from typing import Any

import expost as xp
from conformance.by_library import answer, read, transcript_of
from conformance.drawing import (
    Tree,
    a_domain,
    a_query,
    a_subject,
    a_value,
    an_attribute_domain,
    of_pairs,
)
from expost.domains import domain_from_json
from expost.files.canonical import readable_tree, value_tree
from expost.queries import query_from_json
from expost.sampling import InsecureSource, draw

__all__ = [
    "chains",
    "decisions",
    "decisions_about_changes",
    "decisions_about_distances",
    "decisions_in_one_place",
    "decisions_with_noise",
    "draws",
    "frozen",
    "ids",
    "ids_beyond_the_basic_plane",
    "policies",
    "policies_beyond_the_basic_plane",
    "weights",
    "weights_of_scores",
    "with_answers",
]

FILTERS = ("basic", "simplified", "bayesian")


def with_answers(check: str, given: Tree) -> Tree:
    """A case, with what the library says about it."""
    case = {"check": check, "given": given}
    return {**case, "expected": answer(case)}


def exchanges_on(rng: Random, domain: Tree, count: int, query: Tree | None = None) -> list[Tree]:
    """Some queries, and responses of a subject to them."""
    on, value = domain_from_json(read(domain)), a_value(rng, domain)
    menu = [query] if query else [a_query(rng, domain) for _ in range(rng.randint(1, 3))]
    found = []
    for _ in range(count):
        tree = rng.choice(menu)
        likelihood = query_from_json(read(tree)).on(on)
        position = draw(likelihood.pmf(on.locate(value)), InsecureSource(rng.getrandbits(64)))
        response = readable_tree(value_tree(likelihood.responses[position]))
        found.append({"query": tree, "response": response})
    return found


def decisions(rng: Random, longest: int = 6) -> Tree:
    """A decision. The budget is often what the question takes at worst, or just beside that."""
    return _decision(rng, a_domain(rng), longest)


def decisions_about_changes(rng: Random) -> Tree:
    """The same where a value may change, and steps are asked about in any order."""
    while "changing" not in str(domain := an_attribute_domain(rng)):
        pass
    return _decision(rng, domain, longest=8)


def decisions_about_distances(rng: Random) -> Tree:
    """The same where a number may change by so much from step to step, about steps far apart."""
    values = rng.sample([0, 1, 2, 3, 0.5], rng.randint(3, 4))
    changing = {"changing": values, "max_step": rng.choice(["1", "0.5"])}
    domain: Tree = {"attributes": {"x": changing, "region": ["n", "s"]}}
    menu = [{**of_pairs(rng, len(values)), "about": ["x"], "at": step} for step in (1, 4, 4)]
    given: Tree = {
        "domain": domain,
        "filter": {"kind": "bayesian", "epsilon": "1"},
        "exchanges": [each for tree in menu for each in exchanges_on(rng, domain, 1, tree)],
        "query": rng.choice(menu),
    }
    return {**given, "filter": _budget(rng, given)}


def decisions_with_noise(rng: Random) -> Tree:
    """The same about integers with noise: either end of the range may be the worst response."""
    domain: Tree = {"values": list(range(rng.randint(2, 4)))}
    width = len(domain["values"])
    query = {
        "kind": "geometric",
        "range": [rng.randint(-1, 0), width - rng.randint(0, 1)],
        "sensitivity": width,
        "epsilon": rng.choice(["0.5", "1"]),
    }
    return _decision(rng, domain, 3, query)


def decisions_in_one_place(rng: Random) -> Tree:
    """Those in which what was said is most and least likely in one place that the question sees.

    Then the loss and the epsilon do not simply add up, and the question may add nothing.
    """
    first = rng.sample(["a", "b", "c"], rng.randint(2, 3))
    domain: Tree = {"attributes": {"x": first, "y": ["no", "yes"]}}
    rows = [["0.8", "0.2"], ["0.1", "0.9"]]
    rows += [[f"0.{p}", f"0.{10 - p}"] for p in (rng.randint(2, 7) for _ in range(2 * len(first)))]
    said: Tree = {
        "kind": "channel",
        "responses": ["yes", "no"],
        "probabilities": rows[: 2 * len(first)],
        "about": ["x", "y"],
    }
    given: Tree = {
        "domain": domain,
        "filter": {"kind": "bayesian", "epsilon": "1"},
        "exchanges": [{"query": said, "response": "yes"}] * rng.randint(1, 2),
        "query": {**of_pairs(rng, len(first)), "about": ["x"]},
    }
    return {**given, "filter": _budget(rng, given)}


def _decision(rng: Random, domain: Tree, longest: int, query: Tree | None = None) -> Tree:
    given: Tree = {
        "domain": domain,
        "filter": {"kind": rng.choice(FILTERS), "epsilon": "1"},
        "exchanges": exchanges_on(rng, domain, rng.randint(0, longest), query),
    }
    again = given["exchanges"] and rng.random() < 0.5
    given["query"] = given["exchanges"][-1]["query"] if again else query or a_query(rng, domain)
    given["filter"] = _budget(rng, given)
    return given


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
    """The same where it matters in which order doubles are added."""
    names = rng.sample(["age", "sex", "größe", "b"], 3)
    rows = [[rng.choice([1, 0.1, 0.7, -3]) for _ in names] for _ in range(3)]
    rows = [row for k, row in enumerate(rows) if row not in rows[:k]]
    query = {
        "kind": rng.choice(["linear", "logistic"]),
        "weights": {name: rng.choice([0.1, 0.2, 0.3, -0.7]) for name in names},
        "intercept": 0.1,
        "epsilon": "30.5",
    }
    more = {"range": [-3, 3], "clip": True} if query["kind"] == "linear" else {}
    responses = [-3, 3] if more else [0, 1]
    domain = {"points": {"names": names, "rows": rows}}
    return {"domain": domain, "query": {**query, **more}, "responses": responses}


def weights(rng: Random) -> Tree:
    """The weights of some responses."""
    domain = a_domain(rng)
    query = a_query(rng, domain)
    likelihood = query_from_json(read(query)).on(domain_from_json(read(domain)))
    size = min(len(likelihood.responses), 1 << 20)
    some = {rng.randrange(size) for _ in range(3)} | {0, size - 1}
    responses = [readable_tree(value_tree(likelihood.responses[k])) for k in sorted(some)]
    return {"domain": domain, "query": query, "responses": responses}


def draws(rng: Random) -> Tree:
    """A draw from given bytes: any, or those of the numbers next to where responses change."""
    domain = a_domain(rng)
    query, value = a_query(rng, domain, steps=1), a_value(rng, domain)
    on = domain_from_json(read(domain))
    pmf = query_from_json(read(query)).on(on).pmf(on.locate(value))
    bits = pmf.total.bit_length()
    count = -(-bits // 8)
    uniform = rng.choice([0, pmf.total - 1, rng.randrange(pmf.total), _edge(rng, pmf)])
    bytes_of = (uniform << (8 * count - bits)).to_bytes(count, "big")
    # What is not below the total is drawn again; bits beyond those that are needed do not matter.
    if (1 << bits) > pmf.total and rng.random() < 0.3:
        bytes_of = b"\xff" * count + bytes_of
    spare = rng.randrange(1 << (8 * count - bits))
    last = (int.from_bytes(bytes_of, "big") | spare).to_bytes(len(bytes_of), "big")
    return {"domain": domain, "query": query, "value": value, "bytes": last.hex()}


def _edge(rng: Random, pmf: Any) -> int:
    """A number at which the response changes, or the one before it."""
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
    return {"query": a_query(rng, a_domain(rng))}


def policies(rng: Random) -> Tree:
    budget = rng.choice([{"epsilon": "2.50"}, {"ratio": "9/4"}, {"epsilon": "3/2"}])
    return {
        "policy": {
            "version": 1,
            "study": rng.choice(["Smoking in the north", "", "größer"]),
            "nonce": rng.randbytes(16).hex(),
            "domain": a_domain(rng),
            "filter": {"kind": rng.choice(FILTERS), **budget},
        }
    }


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
    domain = a_domain(rng)
    exchanges = [
        [query_from_json(read(each["query"])).content_id, each["response"]]
        for each in exchanges_on(rng, domain, rng.randint(0, 4))
    ]
    policy = rng.randbytes(32).hex()
    return {"policy": policy, "subject": a_subject(rng), "exchanges": exchanges}


def frozen(rng: Random) -> Tree:
    domain = an_attribute_domain(rng)
    first = a_value(rng, domain)
    records = [first]
    for _ in range(rng.randint(1, 5)):
        new = a_value(rng, domain)
        attributes = domain["attributes"].items()
        changing = [name for name, x in attributes if isinstance(x, dict) and "changing" in x]
        records.append({**first, **{name: new[name] for name in changing}})
    return {"domain": domain, "records": records}
