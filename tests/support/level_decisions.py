"""Random decisions of filters with levels, on records that are small enough to list.

The oracle is ``protected_pairs``; the weights of a query are those of the library. Most budgets are
the worst case of the query, or differ from it by one part in 10^25.
"""

from __future__ import annotations

import itertools
import json
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any

import mpmath

import expost as xp
from expost.device import device
from expost.domains import domain_from_json
from expost.files.reading import parse
from expost.filters import filter_from_json
from expost.queries import FiniteLikelihood, query_from_json
from support.protected_pairs import Charge, Question, Study
from support.random_documents import (
    DEVICE_FAMILIES,
    Domain,
    Tree,
    as_text,
    draw_query_on_values,
    families_on,
)

__all__ = [
    "LEVELS",
    "LevelDecision",
    "draw_level",
    "draw_level_decision",
    "hunt",
    "refused_by_device",
    "refused_by_library",
]

LEVELS = ("everything", "attributes", "groups", "steps")
KINDS = ("basic", "simplified", "bayesian")
MOST_RECORDS, MOST_RESPONSES = 400, 64
TINY = Fraction(1, 10**25)


@dataclass(frozen=True)
class LevelDecision:
    """A decision as a device and the library read it, and as the oracle does."""

    domain: Tree
    filter: Tree
    exchanges: tuple[Tree, ...]
    query: Tree
    study: Study
    asked: tuple[tuple[Question, int], ...]
    question: Question

    @property
    def refusing(self) -> list[int]:
        """The positions of the filters that refuse, by the oracle."""
        return self.study.refusing(self.filter, self.asked, self.question)


def read(tree: Tree) -> Any:
    return parse(json.dumps(tree))


def question_of(domain: Any, tree: Tree) -> tuple[Question, tuple[Any, ...]]:
    """Return a query for the oracle, and its responses."""
    likelihood: Any = query_from_json(read(tree)).on(domain)
    seen: FiniteLikelihood = getattr(likelihood, "on_part", likelihood)
    responses = tuple(seen.responses)
    pmfs = [seen.pmf(place) for place in range(len(seen.domain))]
    columns = tuple(
        tuple(Fraction(pmf.weight(y), pmf.total) for pmf in pmfs) for y in range(len(responses))
    )
    epsilon = Fraction(tree["epsilon"]) if "epsilon" in tree else None
    return Question(tuple(tree["about"]), tree.get("at"), columns, epsilon), responses


def draw_level(random: Random, attributes: Tree, kind: str) -> Tree | None:
    """Draw a level of a kind that suits the attributes."""
    names = list(attributes)
    if kind == "attributes":
        return {"attributes": 1}
    if kind == "groups":
        groups = [random.sample(names, random.randint(1, len(names))) for _ in range(2)]
        rest = [name for name in names if all(name not in group for group in groups)]
        return {"groups": [*groups, rest] if rest else groups}
    return {"steps": random.randint(1, 3)} if kind == "steps" else None


def draw_study(random: Random, kind: str) -> tuple[Domain, Study]:
    """Draw a few attributes of two or three values, and the study of their records."""
    while True:
        attributes: Tree = {}
        for name in ("a", "b", "c")[: random.randint(1, 3)]:
            labels = [f"{name}{k}" for k in range(random.randint(2, 3))]
            values = random.choice([labels, {"integers": [0, random.randint(0, 2)]}])
            attributes[name] = values
            if random.random() < 0.6:
                attributes[name] = {"changing": values}
                limits: list[Tree] = [{}, {"times": random.randint(0, 2)}]
                limits += [{"max_step": "1"}] if isinstance(values, dict) else []
                attributes[name] |= {} if kind == "steps" else random.choice(limits)
        changes = any("changing" in x for x in attributes.values() if isinstance(x, dict))
        if kind == "steps" and not changes:
            continue
        domain, steps = Domain({"attributes": attributes}), random.randint(1, 3)
        study = Study.read(attributes, steps)
        if math.prod(study.attributes[name].size for name, _ in study.cells) <= MOST_RECORDS:
            return domain, study


def draw_query_about(random: Random, domain: Domain, study: Study) -> Tree:
    """Draw a query about one, two or three attributes, of any family that suits them."""
    names = random.sample(list(study.attributes), random.randint(1, len(study.attributes)))
    part = domain.part(names)
    alone = Domain({"values": list(part.values)}) if len(names) == 1 else None
    families = families_on(alone, DEVICE_FAMILIES) if alone else PAIR_FAMILIES
    tree = draw_query_on_values(random, part, families).tree
    at = {"at": random.randint(1, study.steps)}
    changing = any(study.attributes[name].changing for name in names)
    return {**tree, "about": names, **(at if changing else {})}


PAIR_FAMILIES = [
    "randomized_response", "local_hashing", "hadamard_response", "channel", "channel of classes",
    "exponential_mechanism", "perturbation",
]  # fmt: skip
"""Families on any combinations, with few responses."""


def draw_level_decision(random: Random, *, conjunction: float = 0.2) -> LevelDecision:
    """Draw a decision about records with some exchanges; ties are as frequent as all else."""
    kinds = [random.choice(LEVELS)]
    while len(kinds) < 3 and random.random() < conjunction:
        kinds.append(random.choice(LEVELS))
    domain, study = draw_study(random, "steps" if "steps" in kinds else kinds[0])
    library_domain = domain_from_json(read(domain.tree))
    menu: list[tuple[Tree, Question, tuple[Any, ...]]] = []
    while len(menu) < random.randint(1, 5):
        tree = draw_query_about(random, domain, study)
        question, responses = question_of(library_domain, tree)
        if len(responses) <= MOST_RESPONSES:
            menu.append((tree, question, responses))
    exchanges: list[Tree] = []
    asked: list[tuple[Question, int]] = []
    for _ in range(random.randint(0, 7)):
        tree, question, responses = random.choice(menu)
        y = random.randrange(len(responses))
        if any(study.likelihoods([*asked, (question, y)])):
            response = responses[y]
            response = list(response) if isinstance(response, tuple) else response
            exchanges.append({"query": tree, "response": response})
            asked.append((question, y))
    tree, question, _ = random.choice(menu)
    filters = []
    for kind in kinds:
        level = draw_level(random, domain.tree["attributes"], kind)
        guard: Tree = {"kind": random.choice(KINDS), **({"protects": level} if level else {})}
        charges = study.worst(guard, asked, question)
        filters.append({**guard, **draw_budget(random, charges)})
    conjoined = {"kind": "all", "filters": filters} if len(filters) > 1 else filters[0]
    return LevelDecision(
        domain.tree, conjoined, tuple(exchanges), tree, study, tuple(asked), question
    )


def draw_budget(random: Random, charges: list[Charge]) -> Tree:
    """Draw a budget that is often the largest charge, or next to it."""
    choice = random.randrange(4)
    largest = max(charges, key=nats)
    if choice == 0 or largest.ratio is None:
        return {"epsilon": random.choice(["0.3", "0.5", "1", "2.5", "4"])}
    beside = random.choice([-TINY, Fraction(0), Fraction(0), TINY])
    if largest.ratio == 1:
        limit = largest.epsilon + beside
        return {"epsilon": str(limit if limit > 0 else TINY)}
    ratio = largest.ratio * (1 + beside)
    if choice < 3 and not largest.epsilon and ratio > 1 and ratio.denominator < 2**1400:
        return {"ratio": str(ratio)}
    with mpmath.workdps(60):
        exact = nats(largest) * (1 + mpmath.mpf(beside.numerator) / beside.denominator)
        return {"epsilon": mpmath.nstr(exact, random.choice([9, 25, 40]))}


def nats(charge: Charge) -> Any:
    """Return a charge as a number of 60 digits, to sort by and to round."""
    if charge.ratio is None:
        return mpmath.inf
    with mpmath.workdps(60):
        logarithm = mpmath.log(charge.ratio.numerator) - mpmath.log(charge.ratio.denominator)
        return logarithm + mpmath.mpf(charge.epsilon.numerator) / charge.epsilon.denominator


def refused_by_device(
    case: LevelDecision, kind: Any = device.Account, module: Any = device
) -> list[int]:
    """Return the positions of the filters that refuse, by a device."""

    def parsed(tree: Any) -> Any:
        return module.parse(as_text(tree))

    domain = module.Domain(parsed(case.domain))
    account, guard = kind(domain), module.Filter.read(parsed(case.filter), domain)
    query = account.compiled(module.Query.read(parsed(case.query)))
    for exchange in case.exchanges:
        module.decide(guard, account, query)  # so that it has something to remember
        compiled = account.compiled(module.Query.read(parsed(exchange["query"])))
        account.add(compiled, compiled.likelihood.read(parsed(exchange["response"])))
    assert module.decide(guard, account, query) is (not module.refusing(guard, account, query))
    return list(module.refusing(guard, account, query))


def refused_by_library(case: LevelDecision) -> list[int]:
    """Return the positions of the filters that refuse, by the library."""
    transcript = xp.Transcript(domain_from_json(read(case.domain)))
    for exchange in case.exchanges:
        query = query_from_json(read(exchange["query"]))
        transcript = transcript.add(query, exchange["response"])
    query, odometer = query_from_json(read(case.query)), xp.Odometer(transcript)
    decision = filter_from_json(read(case.filter)).decide(odometer, query)
    decisions = decision.by_filter or (decision,)
    assert decision.accepted is all(each.accepted for each in decisions)
    return [index for index, each in enumerate(decisions) if not each.accepted]


def hunt(seed: int) -> None:
    """Compare decisions of the library and of a device with the oracle, until it is stopped."""
    print(f"seed {seed}", flush=True)
    found = accepted = 0
    start = reported = time.monotonic()
    for step in itertools.count():
        case = draw_level_decision(Random(f"{seed}/{step}"))
        refusing = case.refusing
        if refused_by_device(case) != refusing or refused_by_library(case) != refusing:
            found += 1
            print(f"FOUND at {seed}/{step}: the oracle has {refusing}\n{case}", flush=True)
        accepted += not refusing
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            counts = f"{step + 1} decisions, {accepted} accepted, {found} found"
            print(f"{reported - start:6.0f} s  {counts}", flush=True)
