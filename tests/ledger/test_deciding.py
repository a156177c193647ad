"""What a ledger remembers of decisions is what it would decide; columns are what records are."""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import expost as xp
from expost.ledger import Ledger, deciding
from expost.ledger.deciding import Deciding
from expost.ledger.records import Answer, Answered, Head, Heads
from expost.ledger.seals import head_seal, head_seals
from expost.ledger.tallies import Tallies
from expost.ledger.words import Words
from expost.panel.kernel import Kernel
from support.oracles import odds

SMOKES = xp.FiniteSet(["no", "yes"])
BUDGET = Fraction(1)
QUERIES = [xp.randomized_response(epsilon=text) for text in ("1/4", "1/2")]
RATIOS = [odds(Fraction(text)) for text in ("1/4", "1/2")]


def packed(counts: Counter[int]) -> bytes:
    return b"".join(struct.pack("<II", *pair) for pair in sorted(counts.items()) if pair[1])


@pytest.fixture
def words() -> Words:
    """Responses 1 and 2 are "no" and "yes" to the first query, 3 and 4 to the second."""
    kernel = Kernel(SMOKES, xp.BayesianFilter(epsilon=BUDGET))
    words = Words(kernel)
    for query, position in product((1, 2), (0, 1)):
        words.propose_query(QUERIES[query - 1])
        assert words.propose_response(query, position) == 2 * query - 1 + position
    return words


def accepts(counts: Counter[int], query: int) -> bool:
    """By the formula of the paper: the loss after the query at worst is within the budget."""
    with mpmath.workdps(60):
        logs = [mpmath.log(mpmath.mpf(r.numerator) / r.denominator) for r in RATIOS]
        apart = (counts[2] - counts[1]) * logs[0] + (counts[4] - counts[3]) * logs[1]
        return bool(abs(apart) + logs[query - 1] <= mpmath.mpf(BUDGET.numerator))


def decided(
    memory: Deciding, tallies: Sequence[Counter[int]], asked: list[int], words: Words
) -> list[bool]:
    found = memory.accepted(Tallies([packed(each) for each in tallies]), np.array(asked), words)
    return [bool(each) for each in found]


@pytest.mark.parametrize(
    ("together", "most"), [(1, 9), (7, 9), (32, 9), (33, 9), (100, 9), (300, 3)]
)
def test_what_is_remembered_is_what_the_formula_says(
    words: Words, together: int, most: int
) -> None:
    """Where most have answered the same, which is 300 after up to two answers, too."""
    chance, memory = random.Random(together), Deciding(words._kernel)
    for _ in range(600 // together + 3):
        tallies = [
            Counter(chance.choices((1, 2, 3, 4), k=chance.randrange(most))) for _ in range(together)
        ]
        asked = chance.choices((1, 2), k=together)
        due = [accepts(*each) for each in zip(tallies, asked, strict=True)]
        for _ in range(2):
            assert decided(memory, tallies, asked, words) == due
    assert any(memory._known) is (together <= 32)


def test_only_so_much_is_remembered(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "_MOST", 50)
    chance, memory = random.Random(1), Deciding(words._kernel)
    for _ in range(100):
        tallies = [Counter(chance.choices((1, 2, 3, 4), k=12)) for _ in range(5)]
        assert decided(memory, tallies, [2] * 5, words) == [accepts(each, 2) for each in tallies]
        assert len(memory._known) <= 55


def test_a_number_that_another_process_gave_to_another_query_is_decided_about_anew(
    tmp_path: Path,
) -> None:
    """The first query had a number when it was accepted, and lost it to one that is too much."""
    place = tmp_path / "study.db"
    small, large = xp.randomized_response(epsilon="1/4"), xp.randomized_response(epsilon=2)
    with Ledger.create(place, SMOKES, filter=xp.BayesianFilter(epsilon=1)) as first:
        first.register(["ann", "bob"])
        with Ledger(place) as second:
            waiting = ["decided"]

            def step(name: str) -> None:
                if name in waiting:
                    waiting.remove(name)
                    assert second.ask(large, ["no"], ["bob"]).refused == ("bob",)

            first._core._step = step
            assert first.ask(small, ["no"], ["ann"]).answered.all()
            assert first.queries == {each.content_id: each for each in (large, small)}
            assert first.ask(large, ["no"], ["bob"]).refused == ("bob",)
            assert first.ask(small, ["no"], ["bob"]).answered.all()
        assert first.verify().good


@pytest.mark.parametrize("together", [1, 2, 24, 25, 200])
def test_a_tally_has_one_more_response(together: int) -> None:
    chance = random.Random(together)
    for most in (3, 40, 70_000):
        for _ in range(20):
            tallies = [
                Counter(chance.choices(range(1, most), k=chance.choice((0, 1, 5, 30))))
                for _ in range(together)
            ]
            before = Tallies([packed(each) for each in tallies])
            last = max((number for each in tallies for number in each), default=0)
            assert before.last_response == last
            responses = [chance.choice([*each, chance.randrange(1, most)]) for each in tallies]
            for each, response in zip(tallies, responses, strict=True):
                each[response] += 1
            after = before.plus(responses)
            assert list(after) == [packed(each) for each in tallies]
            assert after.whole == b"".join(after)
            assert after.lengths.tolist() == list(map(len, after))


def flipped(value: Any) -> Iterator[Any]:
    """The same with one bit of it changed; of numbers also bits that no word has."""
    if isinstance(value, bytes):
        whole = int.from_bytes(value)
        yield from ((whole ^ 1 << bit).to_bytes(len(value)) for bit in range(8 * len(value)))
    elif isinstance(value, str):
        yield from (each.decode() for each in flipped(value.encode()) if each.isascii())
    else:
        yield from (
            value ^ 1 << bit for bit in range(1 if value is False else 128 if value == 5 else 64)
        )


def test_a_seal_covers_every_bit_of_a_head() -> None:
    head: list[Any] = [7, 3, b"d" * 32, b"t" * 16, False, "week 3", 5]
    others = [
        [*head[:place], other, *head[place + 1 :]]
        for place, value in enumerate(head)
        for other in flipped(value)
    ]
    assert len(others) == 2 * 64 + 128 + 8 * 48 + 1 + 7 * 6
    assert head_seal(*head) not in [head_seal(*each) for each in others]


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"sequence": 1 << 40},
        {"closed": True},
        {"reserved": "k"},
        {"last": 1 << 120},
        {"last": -1},
        {"tally": b"odd"},
        {"tally": bytes(8 * 5000)},
        {"digest": b"short"},
    ],
)
def test_seals_of_many_heads_are_those_of_each(odd: dict[str, Any]) -> None:
    """Whatever one of them has: numbers beyond a word are those of another backend, or damaged."""
    generator = random.Random(5)
    numbers, sequences, lasts = (
        [generator.randrange(1, 1 << 30) for _ in range(500)] for _ in range(3)
    )
    heads = [
        Head(
            sequence, generator.randbytes(32), generator.randbytes(8 * (last % 9)), False, "", last
        )
        for sequence, last in zip(sequences, lasts, strict=True)
    ]
    heads[17] = heads[17]._replace(**odd)
    due = [head_seal(number, *head) for number, head in zip(numbers, heads, strict=True)]
    assert head_seals(numbers, Heads.of(heads)) == due


@pytest.mark.parametrize("odd", [b"", None])
def test_what_is_not_a_text_is_not_taken_for_an_empty_one(odd: Any) -> None:
    """One bit makes an empty blob of an empty text in SQLite."""
    heads = [Head(1, bytes([number]) * 32, b"", False, "", 1) for number in range(40)]
    heads[17] = heads[17]._replace(reserved=odd)
    with pytest.raises(AttributeError):  # which the store says is damaged
        head_seals(range(40), Heads.of(heads))


def test_digests_of_the_right_length_in_all_are_not_enough() -> None:
    heads = [Head(1, bytes([number]) * 32, b"", False, "", 1) for number in range(40)]
    heads[3] = heads[3]._replace(digest=b"d" * 31)
    heads[4] = heads[4]._replace(digest=b"d" * 33)
    due = [head_seal(number, *head) for number, head in enumerate(heads)]
    assert head_seals(range(40), Heads.of(heads)) == due


def test_columns_are_what_records_are() -> None:
    heads = [Head(n, bytes([n]) * 32, b"t" * n, n == 2, "k" if n == 1 else "", 9) for n in range(5)]
    columns = Heads.of(heads)
    assert list(columns) == heads
    assert Heads.of(columns) is columns
    assert list(columns.part(1, 4)) == heads[1:4]
    assert [list(columns.some(own)) for own in ([], [2], [0, 3])] == [[], heads[2:3], heads[0:4:3]]
    assert list(Heads.joined([heads[:2], Heads.of(()), columns])) == [*heads[:2], *heads]
    assert head_seals(range(5), columns) == [head_seal(n, *h) for n, h in enumerate(heads)]
    after = [head._replace(closed=True) for head in heads]
    answers = [Answer("k", n, 1, 2, *pair) for n, pair in enumerate(zip(heads, after, strict=True))]
    added = Answered.of(answers)
    assert list(added) == answers
    assert added.closing == [0, 1, 3, 4]
    assert (len(Answered.of(())), list(Answered.of(()))) == (0, [])
