"""Every level on every domain, in every place: it works, or is refused with one line.

docs/reference/filters.md has the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import expost as xp
from expost.device import device
from expost.errors import ExpostError
from expost.filters import Filter
from expost.proof import verify
from expost.queries import Query

DOMAINS: dict[str, Any] = {
    "set": xp.FiniteSet(["no", "yes"]),
    "attributes": xp.Attributes(region=["n", "s"], smokes=["no", "yes"]),
    "changing": xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"])),
    "limited": xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=2)),
    "box": xp.Box(age=(0, 10)),
}
LEVELS: dict[str, Any] = {
    "everything": None,
    "attributes": xp.attributes(1),
    "groups": xp.groups(["region"], ["smokes"]),
    "steps": xp.steps(1),
    "four steps": xp.steps(4),
}
REASONS = {
    ("attributes", "set"): "a finite set has no attributes and no steps",
    ("groups", "set"): "a finite set has no attributes and no steps",
    ("steps", "set"): "a finite set has no attributes and no steps",
    ("attributes", "box"): "levels need Attributes",
    ("groups", "box"): "levels need Attributes",
    ("steps", "box"): "levels need Attributes",
    ("steps", "attributes"): "steps need an attribute that changes",
    ("steps", "limited"): "smokes has a limit on its changes, which ties its steps together",
}


def query_on(domain: str) -> Query:
    if domain == "box":
        return xp.logistic({"age": 1}, epsilon="1/4")
    query = xp.randomized_response(epsilon="1/4")
    if domain == "set":
        return query
    return query.about("smokes", at=None if domain == "attributes" else 1)


def values_on(domain: str) -> Any:
    """The values of two subjects, as a panel takes them."""
    if domain in ("set", "box"):
        return {"set": ["no", "yes"], "box": {"age": [3.0, 5.0]}}[domain]
    histories = ["no", "yes"] if domain == "attributes" else [["no"], ["yes"]]
    return {"region": ["n", "s"], "smokes": histories}


def promise(level: str, several: bool) -> Filter:
    protects = {} if LEVELS[level] is None else {"protects": LEVELS[level]}
    guard = xp.BayesianFilter(epsilon=1, **protects)
    return xp.AllOf(guard, xp.BayesianFilter(epsilon=8)) if several else guard


def transcript_on(domain: str, guard: Filter) -> xp.Transcript:
    transcript = xp.Transcript(DOMAINS[domain], guard)
    return transcript.add(query_on(domain), 1 if domain == "box" else "no")


def in_session(domain: str, guard: Filter, folder: Path) -> None:
    value = {"set": "no", "box": {"age": 3}}.get(domain, {"region": "n", "smokes": "no"})
    session = xp.Session(DOMAINS[domain], value, filter=guard)
    session.ask(query_on(domain))
    assert 0 < session.remaining < 1


def in_panel(domain: str, guard: Filter, folder: Path) -> None:
    panel = xp.Panel(DOMAINS[domain], filter=guard, subjects=["ann", "bob"])
    assert panel.ask(query_on(domain), values_on(domain)).answered.all()


def in_ledger(domain: str, guard: Filter, folder: Path) -> None:
    with xp.Ledger.create(folder / "study.db", DOMAINS[domain], filter=guard) as ledger:
        ledger.register(["ann", "bob"], kind="simulated")
        replies = ledger.ask(query_on(domain), values_on(domain), key="first")
        assert replies.answered.all()


def on_device(domain: str, guard: Filter, folder: Path) -> None:
    tree = json.loads(xp.Transcript(DOMAINS[domain], guard).to_json())
    policy = {"version": 1, "study": "", "nonce": "0" * 32}
    policy |= {"domain": tree["domain"], "filter": tree["filter"]}
    value = '{"region": "n", "smokes": "no"}' if domain != "set" else '"no"'
    path = str(folder / "store")
    device.Device.create(path, json.dumps(policy), "ann", value)
    device.Device(path).close()


def in_replay(domain: str, guard: Filter, folder: Path) -> None:
    assert xp.replay(transcript_on(domain, guard)).respected


def in_audit(domain: str, guard: Filter, folder: Path) -> None:
    table = {"subject": ["ann", "bob"], "order": [1, 1], "query": ["q", "q"]}
    table["response"] = [1, 0] if domain == "box" else ["no", "yes"]
    answers = xp.Answers(DOMAINS[domain], {"q": query_on(domain)}, table)
    audit = xp.audit(answers, filter=guard)
    assert audit.respected == 2


def in_proof(domain: str, guard: Filter, folder: Path) -> None:
    transcript = transcript_on(domain, guard)
    proof = xp.proof.certificate(transcript).encode().decode()
    assert verify.verify(transcript.to_json(), proof).shows_end_within_budget


PLACES: list[Callable[[str, Filter, Path], None]] = [
    in_session, in_panel, in_ledger, on_device, in_replay, in_audit, in_proof,
]  # fmt: skip


@pytest.mark.parametrize("several", [False, True], ids=["alone", "AllOf"])
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("place", PLACES)
def test_a_level_works_or_is_refused_in_one_line(
    place: Callable[[str, Filter, Path], None],
    domain: str,
    level: str,
    several: bool,
    tmp_path: Path,
) -> None:
    guard = promise(level, several)
    reason = REASONS.get((level.removeprefix("four "), domain))
    if place is on_device and domain == "box":
        return  # no device answers about boxes
    if reason is None:
        place(domain, guard, tmp_path)
        return
    with pytest.raises(ExpostError, match=reason) as caught:
        place(domain, guard, tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("several", [False, True], ids=["alone", "AllOf"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_saturating_query_works_or_needs_one_filter(
    level: str, several: bool, tmp_path: Path
) -> None:
    domain, guard = DOMAINS["changing"], promise(level, several)
    session = xp.Session(domain, {"region": "n", "smokes": "no"}, filter=guard)
    panel = xp.Panel(domain, filter=guard, subjects=["ann"])
    ledger = xp.Ledger.create(tmp_path / "study.db", domain, filter=guard)
    ledger.register(["ann"], kind="simulated")

    question = "smokes at 1"
    makers: list[Callable[[], Any]] = [
        lambda: xp.saturating(session, question, cap=1).content_id,
        lambda: panel.saturating(question, cap=1)[0],
        lambda: ledger.saturating(question, cap=1)[0],
    ]
    with ledger:
        if several:
            for make in makers:
                with pytest.raises(ExpostError, match="ends at the budget of one filter"):
                    make()
            return
        first, *others = (make() for make in makers)
        assert others == [first, first]
        session.ask(panel.queries[first])
        assert session.remaining < 1e-5
