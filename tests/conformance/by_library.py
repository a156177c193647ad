"""What the library says about the cases of a conformance file."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import expost as xp
from conformance.sync_model import Bytes, policy_id, read, requests
from expost.domains import domain_from_json, freeze
from expost.errors import ExpostError
from expost.files.canonical import canonical_bytes, readable_tree, value_tree
from expost.filters import Filter, filter_from_json
from expost.queries import FiniteLikelihood, Query, query_from_json
from expost.sampling import draw
from support.random_documents import Tree

__all__ = ["CHECKS", "Bytes", "answer", "read"]


def transcript_of(given: Tree) -> xp.Transcript:
    guard = filter_from_json(read(given["filter"]))
    transcript = xp.Transcript(domain_from_json(read(given["domain"])), guard)
    for exchange in given["exchanges"]:
        transcript = transcript.add(query_from_json(read(exchange["query"])), exchange["response"])
    return transcript


def query(given: Tree) -> Tree:
    return {"id": query_from_json(read(given["query"])).content_id}


def policy(given: Tree) -> Tree:
    return {"id": policy_id(given["policy"])}


def chain(given: Tree) -> Tree:
    start = {"ledger": 1, "policy": given["policy"], "subject": given["subject"]}
    heads = [hashlib.sha256(canonical_bytes(start))]
    for number, (query_id, response) in enumerate(given["exchanges"], 1):
        value = tuple(response) if isinstance(response, list) else response
        said = {"query": query_id, "response": value_tree(value), "sequence": number}
        heads.append(hashlib.sha256(canonical_bytes(said) + heads[-1].digest()))
    return {"heads": [head.hexdigest() for head in heads]}


def ticket(given: Tree) -> Tree:
    names = ("key", "ledger", "previous", "query", "sequence", "subject")
    signed = canonical_bytes({"amendment": None, **{name: given[name] for name in names}})
    key = bytes.fromhex(given["ticket_key"])
    return {"ticket": hmac.new(key, signed, hashlib.sha256).hexdigest()}


def sync(given: Tree) -> Tree:
    return {"requests": requests(given, Bytes(bytes.fromhex(given["bytes"])))}


def weights(given: Tree) -> Tree:
    domain = domain_from_json(read(given["domain"]))
    likelihood: Any = query_from_json(read(given["query"])).on(domain)
    seen: FiniteLikelihood = getattr(likelihood, "on_part", likelihood)
    columns = []
    for response in given["responses"]:
        position = seen.position(response)
        assert position is not None, "it is a response"
        column = [seen.pmf(place).weight(position) for place in range(len(seen.domain))]
        common = math.gcd(*column)
        columns.append([f"{weight // common:x}" for weight in column])
    return {"total": f"{seen.pmf(0).total:x}", "columns": columns}


def drawn(given: Tree) -> Tree:
    domain = domain_from_json(read(given["domain"]))
    likelihood = query_from_json(read(given["query"])).on(domain)
    source = Bytes(bytes.fromhex(given["bytes"]))
    position = draw(likelihood.pmf(domain.locate(given["value"])), source)
    return {
        "response": readable_tree(value_tree(likelihood.responses[position])),
        "used": source.used,
    }


def decision(given: Tree) -> Tree:
    transcript, asked = transcript_of(given), query_from_json(read(given["query"]))
    odometer, guard = xp.Odometer(transcript), transcript.required_filter
    if not isinstance(guard, xp.AllOf):
        return decided_by(guard, odometer, asked)
    accepted = guard.decide(odometer, asked).accepted
    return {
        "accepted": accepted,
        "filters": [decided_by(inner, odometer, asked) for inner in guard.filters],
    }


def decided_by(guard: Filter, odometer: xp.Odometer, asked: Query) -> Tree:
    worst = guard.worst_case(odometer, asked)
    assert worst.exact is not None
    found = worst.exact()
    told: Tree = {"accepted": guard.decide(odometer, asked).accepted}
    if found.ratio is None:
        return {**told, "rational": None, "ratio": None}
    return {**told, "rational": str(found.rational), "ratio": quotient(found.ratio)}


def quotient(ratio: Fraction) -> str:
    return f"{ratio.numerator:x}/{ratio.denominator:x}"


def frozen(given: Tree) -> Tree:
    domain = domain_from_json(read(given["domain"]))
    assert isinstance(domain, xp.Attributes)
    places = [domain.locate(record) for record in given["records"]]
    sequence = freeze(domain, [place for place in places if place is not None])
    return {"records": [dict(zip(domain.names, domain.value(x), strict=True)) for x in sequence]}


def refused(given: Tree) -> Tree:
    try:
        domain = domain_from_json(read(given["domain"]))
        asked = query_from_json(read(given["query"]))
        asked.on(domain)
        if "response" in given:
            xp.Transcript(domain).add(asked, given["response"])
    except ExpostError:
        return {"refused": True}
    return {"refused": False}


CHECKS: dict[str, Callable[[Tree], Tree]] = {
    "query": query,
    "policy": policy,
    "chain": chain,
    "ticket": ticket,
    "sync": sync,
    "weights": weights,
    "draw": drawn,
    "decision": decision,
    "frozen": frozen,
    "refused": refused,
}


def answer(case: Tree) -> Tree:
    """What is to be expected of a case."""
    return CHECKS[case["check"]](case["given"])
