"""Decisions of a ledger are those of the formula, of a session and of a panel."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import mpmath
import pytest

import expost as xp
from expost.ledger import Ledger
from expost.ledger._catalog import Catalog
from expost.ledger._tallies import Decider
from expost.panel._kernel import Kernel
from expost.sampling import InsecureSource
from expost.tally import add_response, pack_counts, unpack_counts
from support.oracles import odds
from support.scripted_devices import HALF, QUARTER, SMOKES, ScriptedDevice, a_ledger, reserved

QUERIES = [QUARTER, HALF]
RATIOS = [odds(Fraction(1, 4)), odds(Fraction(1, 2))]
"""How much likelier a response is for its own value than for the other one."""


def response_number(query: int, position: int) -> int:
    return 2 * query - 1 + position


@pytest.fixture
def decider() -> Decider:
    """Responses 1 and 2 are "no" and "yes" to the first query, 3 and 4 to the second."""
    kernel = Kernel(SMOKES, xp.BayesianFilter(epsilon=1))
    catalog = Catalog(kernel)
    for number, query in enumerate(QUERIES, 1):
        assert catalog.add_query(query) == number
        for position in (0, 1):
            assert catalog.add_response(number, position) == response_number(number, position)
    return Decider(kernel, catalog)


def worst_ratio(counts: Counter[int], query: int) -> Fraction:
    """The largest quotient of likelihoods after the worst response to a query."""
    apart = Fraction(1)
    for number, ratio in enumerate(RATIOS, 1):
        apart *= ratio ** (counts[response_number(number, 1)] - counts[response_number(number, 0)])
    return max(apart, 1 / apart) * RATIOS[query - 1]


def is_within(ratio: Fraction) -> bool:
    with mpmath.workdps(60):
        return bool(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator) <= 1)


def packed(counts: Counter[int]) -> bytes:
    return b"".join(struct.pack("<II", *pair) for pair in sorted(counts.items()) if pair[1])


@pytest.mark.parametrize(("together", "most"), [(1, 9), (7, 9), (33, 9), (100, 9), (300, 3)])
def test_a_decision_is_what_the_formula_says(decider: Decider, together: int, most: int) -> None:
    chance, seen = random.Random(together), set[bool]()
    for _ in range(600 // together + 3):
        counts = [
            Counter(chance.choices((1, 2, 3, 4), k=chance.randrange(most))) for _ in range(together)
        ]
        asked = chance.choices((1, 2), k=together)
        due = [is_within(worst_ratio(*each)) for each in zip(counts, asked, strict=True)]
        given = [packed(each) for each in counts]
        assert decider.accepted(given, [b""] * together, asked) == due
        seen.update(due)
    assert seen == {True, False}


def test_counts_are_added_up_in_blocks_of_subjects(
    decider: Decider, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(2)
    counts = [Counter(chance.choices((1, 2, 3, 4), k=chance.randrange(7))) for _ in range(60)]
    monkeypatch.setattr("expost.panel._log._BLOCK", 10)
    due = [is_within(worst_ratio(each, 1)) for each in counts]
    assert decider.accepted([packed(each) for each in counts], [b""] * 60, [1] * 60) == due


def test_a_tally_counts_one_more_response() -> None:
    chance = random.Random(4)
    for most in (3, 40, 70_000):
        for _ in range(50):
            counts = Counter(chance.choices(range(1, most), k=chance.choice((0, 1, 5, 30))))
            response = chance.choice([*counts, chance.randrange(1, most)])
            after = counts + Counter([response])
            assert add_response(packed(counts), response) == packed(after)
            assert unpack_counts(packed(counts)) == counts
            assert pack_counts({**counts, most: 0}) == packed(counts)


class TestExtras:
    """A query is accepted only if it fits, whichever extras were really given."""

    def fits_all_subsets(self, counts: Counter[int], extras: Sequence[int], query: int) -> bool:
        subsets = chain.from_iterable(combinations(extras, size) for size in range(len(extras) + 1))
        return all(is_within(worst_ratio(counts + Counter(each), query)) for each in subsets)

    def test_no_subset_of_them_exceeds_the_budget(self, decider: Decider) -> None:
        chance, outcomes = random.Random(5), Counter[tuple[bool, bool]]()
        for _ in range(400):
            counts = Counter(chance.choices((1, 2, 3, 4), k=chance.randrange(5)))
            extras = chance.choices((1, 2, 3, 4), k=chance.randint(1, 4))
            query = chance.choice((1, 2))
            given = packed(Counter(extras))
            (accepted,) = decider.accepted([packed(counts)], [given], [query])
            fits = self.fits_all_subsets(counts, extras, query)
            assert fits or not accepted, (counts, extras, query)
            outcomes[accepted, fits] += 1
        assert outcomes[True, True] > 10
        assert outcomes[False, False] > 10

    def test_they_are_counted_in_what_remains_and_in_the_loss(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ann = ScriptedDevice(ledger)
            ledger.reserve(QUARTER, key="k")
            ann.send(ledger, QUARTER, "yes")
            second = {**_fields(ann, 1), "response": "no"}
            ledger.receive([_changed(ann, second)])
            ledger.resolve(["ann"])
            ann.sync(ledger)
            assert ledger.status().states == ("active",)
            # The loss is 1/4, or none if the other response was given too; at most 1/2 then.
            status = ledger.status()
            assert status.loss.upper[0] == pytest.approx(0.5)
            assert status.loss.lower[0] <= 0
            assert status.remaining[0] == pytest.approx(0.5)
            assert ledger.decide(HALF).accepted.tolist() == [True]
            assert ledger.decide(HALF).loss_at_worst.upper[0] == pytest.approx(1)
            large = xp.randomized_response(epsilon="0.6")
            assert ledger.decide(large).accepted.tolist() == [False]
            assert reserved(ledger, large, key="large") == ["refused"]
            assert reserved(ledger, HALF, key="half") == ["reserved"]
            assert ledger.verify().good


def _fields(phone: ScriptedDevice, number: int) -> dict[str, Any]:
    import json

    found: dict[str, Any] = json.loads(phone.sent[number - 1])
    return found


def _changed(phone: ScriptedDevice, fields: dict[str, Any]) -> str:
    reservation = {name: fields[name] for name in fields if name not in ("response", "head")}
    return phone.message(reservation, QUARTER, fields["response"])


GUARDS = [
    xp.BayesianFilter(epsilon="0.6"),
    xp.SimplifiedFilter(epsilon="0.8"),
    xp.BasicFilter(epsilon="1"),
]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.kind)
@pytest.mark.parametrize("seed", range(3))
def test_decisions_equal_those_of_sessions_and_panels(
    guard: Any, seed: int, tmp_path: Path
) -> None:
    """On random histories of answers that devices have sent."""
    chance = random.Random(seed)
    queries = [xp.randomized_response(epsilon=text) for text in ("1/10", "1/5", "0.3")]
    names = list(range(8))
    panel = xp.Panel(SMOKES, filter=guard, subjects=names, source=InsecureSource(seed))
    seen = set[bool]()
    with Ledger.create(tmp_path / "s.db", SMOKES, filter=guard) as ledger:
        ledger.register(names)
        phones = [ScriptedDevice(ledger, name) for name in names]
        for turn in range(10):
            query = chance.choice(queries)
            due = panel.decide(query).accepted.tolist()
            outcomes = reserved(ledger, query, key=f"{turn}")
            assert outcomes == ["reserved" if fits else "refused" for fits in due]
            seen.update(due)
            asked = [name for name, fits in zip(names, due, strict=True) if fits]
            responses = chance.choices(["no", "yes"], k=len(asked), weights=[1, 3])
            if asked:
                panel.record(query, responses, asked)
            for name, response in zip(asked, responses, strict=True):
                phones[name].send(ledger, query, response)
        for name in names:
            transcript = ledger.transcript(name)
            assert transcript == panel.transcript(name)
            session = xp.Session.resume(transcript, "no")
            for query in queries:
                decision = session.decide(query)
                found = ledger.decide(query, [name])
                assert found.accepted.tolist() == [decision.accepted]
        assert seen == {True, False}
        assert ledger.verify().good
