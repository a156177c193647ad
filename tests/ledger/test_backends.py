"""One suite for every store of a ledger: in memory, over a VFS, in a file, on a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from expost.ledger import Backend
from expost.ledger.backend import DECLINED, Row, Stale
from expost.ledger.digests import first_root, next_root
from expost.ledger.errors import Damaged
from expost.ledger.records import (
    Answer,
    Answered,
    Change,
    Head,
    Kept,
    Move,
    Outcome,
    QueryWord,
    ResponseWord,
    Tip,
)
from support.ledgers import POLICY, SHARED, STORES, Opened

QUERY = QueryWord(1, "c" * 64, "smokes", '{"kind": "randomized_response", "epsilon": "1"}')
NO, YES = ResponseWord(1, 1, '"no"'), ResponseWord(2, 1, '"yes"')
ANN, BOB = (1, '"ann"', b"a" * 32), (2, '"bob"', b"b" * 32)


@pytest.fixture(params=STORES)
def doors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    with STORES[request.param](tmp_path, POLICY) as (door, _):
        yield door


@pytest.fixture
def store(doors: Opened) -> Iterator[Backend]:
    backend = doors()
    change = Change(subjects=[ANN, BOB], queries=[QUERY], responses=[NO, YES])
    backend.append(change, [b"first\n"])
    yield backend
    backend.close()


def answered(key: str, subject: int, before: Head, response: int = 1) -> Answer:
    digest = bytes([before.sequence + 1]) * 32
    after = Head(before.sequence + 1, digest, b"t" * 8, before.closed, "", before.last)
    return Answer(key, subject, 1, response, before, after)


def test_a_new_store_has_its_policy_and_the_first_root(doors: Opened) -> None:
    backend = doors()
    assert backend.policy() == POLICY.to_json()
    assert backend.tip() == (0, first_root(POLICY.content_id))
    assert backend.root(0) == backend.tip().root
    assert backend.root(1) is None
    assert (backend.size(), backend.queries(), backend.responses()) == (0, [], [])
    backend.close()


def test_commits_are_chained(store: Backend) -> None:
    first = next_root(first_root(POLICY.content_id), [b"first\n"])
    assert store.tip() == (1, first)
    tip = store.append(Change(end=True), [b"z\n", b"a\n"])
    assert tip == store.tip() == (2, next_root(first, [b"a\n", b"z\n"]))
    assert list(store.roots()) == [first_root(POLICY.content_id), first, tip.root]
    assert store.ended() == 2


def test_a_commit_may_have_to_come_after_another(store: Backend) -> None:
    """Where it does not, nothing is added."""
    first, (one, two) = store.tip(), store.heads([1, 2])
    second = store.append(Change(answers=[answered("k", 1, one)]), [b"2\n"], first)
    for after in (first, first._replace(commits=2), Tip(2, b"r" * 32), Tip(3, b"r" * 32)):
        with pytest.raises(Stale):
            store.append(Change(answers=[answered("l", 2, two)]), [b"3\n"], after)
    assert (store.tip(), store.heads([2]), store.outcomes("l", [2])) == (second, [two], {})
    assert store.append(Change(answers=[answered("l", 2, two)]), [b"3\n"], second).commits == 3


def test_where_an_answer_is_found_is_set_in_the_head_after_it(store: Backend) -> None:
    """So that nobody has to be looked up who has just answered."""
    for key in ("k", "l", "m"):
        heads = zip((1, 2), store.heads([1, 2]), strict=True)
        change = Change(answers=Answered.of([answered(key, *each) for each in heads]))
        store.append(change, [])
        assert list(change.answers) == [
            each._replace(after=head)
            for each, head in zip(change.answers, store.heads([1, 2]), strict=True)
        ]


def test_words_and_subjects_come_back_in_order(store: Backend) -> None:
    assert store.queries() == [QUERY]
    assert store.introduced() == [(QUERY, 1)]
    assert store.responses(1) == [YES]
    assert store.subjects() == [(1, '"ann"'), (2, '"bob"')]
    assert store.subjects(1) == [(2, '"bob"')]
    assert store.numbers(['"bob"', '"eve"', '"ann"']) == [2, 0, 1]
    assert list(store.registered()) == [(1, '"ann"', 1), (2, '"bob"', 1)]


@pytest.mark.parametrize(
    "change",
    [
        Change(subjects=[(3, '"ann"', b"c" * 32)]),
        Change(subjects=[(2, '"eve"', b"c" * 32)]),
        Change(queries=[QUERY._replace(number=2)]),
        Change(queries=[QueryWord(1, "d" * 64, "other", "{}")]),
        Change(responses=[YES._replace(number=3)]),
        Change(responses=[ResponseWord(2, 1, '"maybe"')]),
    ],
)
def test_what_is_there_already_is_stale(store: Backend, change: Change) -> None:
    before = store.tip()
    with pytest.raises(Stale):
        store.append(replace(change, end=True), [b"x\n"])
    assert store.tip() == before
    assert not store.ended()


def test_an_answer_moves_its_head_and_is_found_by_its_key(store: Backend) -> None:
    (head,) = store.heads([1])
    assert head[:5] == (0, ANN[2], b"", False, "")
    store.append(Change(answers=[answered("k", 1, head)]), [b"1\n"])
    (head,) = store.heads([1])
    assert head[:5] == (1, b"\1" * 32, b"t" * 8, False, "")
    store.append(Change(answers=[answered("l", 1, head, 2)]), [b"2\n"])
    assert store.outcomes("k", [1, 2]) == {1: Outcome(1, 1, 1, 2)}
    assert store.outcomes("l", [1, 2]) == {1: Outcome(1, 2, 2, 3)}
    assert store.outcomes("m", [1, 2]) == {}
    rows = [Row("k", 1, 1, 1, 1, 2), Row("l", 1, 1, 2, 2, 3)]
    assert sorted(store.rows()) == rows
    assert store.exchanges(1, head) == rows[:1]  # from an older head
    ann, bob = store.heads([1, 2])
    assert store.exchanges(1, ann) == rows
    assert store.exchanges(2, bob) == []
    assert store.moved_in([2]) == store.moved_in([3, 4]) == [1]
    assert store.moved_in([1, 4]) == store.moved_in([]) == []


def test_heads_come_in_the_order_in_which_they_are_asked_for(store: Backend) -> None:
    store.append(Change(subjects=[(n, f'"{n}"', bytes([n]) * 32) for n in range(3, 9)]), [])
    for own in ([2, 1], [8, 3, 5], [1, 2, 3], [7], [], [3, 4, 6, 5]):
        due = [{1: ANN[2], 2: BOB[2]}.get(n, bytes([n]) * 32) for n in own]
        assert [head.digest for head in store.heads(own)] == due
        parts = store.look([("k", own[:1]), ("l", own[1:])]).heads
        assert [head.digest for part in parts for head in part] == due


def test_requests_of_several_keys_are_added_and_found_together(store: Backend) -> None:
    one, two = store.heads([1, 2])
    change = Change(answers=[answered("k", 1, one)], refused=[Move("l", 2, 1, two, two)])
    store.append(change, [])
    found = store.look([("l", [2]), ("m", [1]), ("k", [1])])
    assert found.outcomes == [{2: Outcome(1, 0, 0, 2)}, {}, {1: Outcome(1, 1, 1, 2)}]
    assert [[head.sequence for head in part] for part in found.heads] == [[0], [1], [1]]


def test_a_head_that_has_moved_is_stale(store: Backend) -> None:
    one, two = store.heads([1, 2])
    store.append(Change(answers=[answered("k", 1, one)]), [])
    tip = store.tip()
    closed = one._replace(closed=True)
    for change in (
        Change(answers=[answered("l", 2, two), answered("l", 1, one)]),
        Change(refused=[Move("l", 1, 1, one, one)]),
        Change(reserved=[Move("l", 1, 1, one, one._replace(reserved="l"))]),
        Change(closed=[Move("", 1, 0, one, closed)]),
    ):
        with pytest.raises(Stale):
            store.append(change, [])
    assert (store.tip(), store.heads([2])) == (tip, [two])
    assert store.outcomes("l", [1, 2]) == {}


def test_a_head_that_is_not_there_does_not_move_and_is_not_added(store: Backend) -> None:
    """As in a damaged table, in which it is not found by its number."""
    (one,) = store.heads([1])
    tip = store.tip()
    with pytest.raises(Stale):
        store.append(Change(answers=[answered("k", 1, one), answered("k", 3, one)]), [])
    assert (store.tip(), store.heads([1]), store.size()) == (tip, [one], 2)
    with pytest.raises((Damaged, IndexError, KeyError)):
        store.heads([3])


@pytest.mark.parametrize("count", [63, 64, 65, 200])
def test_many_heads_move_together_or_not_at_all(store: Backend, count: int) -> None:
    numbers = range(3, 3 + count)
    store.append(Change(subjects=[(n, f'"{n}"', bytes([n]) * 32) for n in numbers]), [])
    heads = store.heads(numbers)
    change = Change(answers=[answered("k", *each) for each in zip(numbers, heads, strict=True)])
    store.append(change, [])
    after = store.heads(numbers)
    assert [head.sequence for head in after] == [1] * count
    assert store.outcomes("k", numbers) == dict.fromkeys(numbers, Outcome(1, 1, 1, 3))
    closing = after[1]._replace(closed=True)
    store.append(Change(closed=[Move("", 4, 0, after[1], closing)]), [])
    tip = store.tip()
    for own in (heads, after):  # all have moved; one is closed
        again = [answered("l", *each) for each in zip(numbers, own, strict=True)]
        with pytest.raises(Stale):
            store.append(Change(answers=again), [])
    assert (store.tip(), store.outcomes("l", numbers)) == (tip, {})
    assert store.heads(numbers) == [after[0], closing, *after[2:]]


def test_a_key_has_one_outcome_for_each_subject(store: Backend) -> None:
    one, two = store.heads([1, 2])
    store.append(Change(refused=[Move("k", 1, 1, one, one)]), [])
    assert store.outcomes("k", [1]) == {1: Outcome(1, 0, 0, 2)}
    with pytest.raises(Stale):
        store.append(Change(answers=[answered("k", 1, one)]), [])
    store.append(Change(answers=[answered("k", 2, two)]), [])
    assert set(store.outcomes("k", [1, 2])) == {1, 2}
    assert store.heads([1]) == [one]


def test_one_reservation_is_open_at_a_time(store: Backend) -> None:
    (one,) = store.heads([1])
    after = one._replace(reserved="k")
    store.append(Change(reserved=[Move("k", 1, 1, one, after)]), [])
    assert store.heads([1]) == [after]
    assert store.waiting(1, 2) == [1]
    assert store.waiting(2, 9) == []
    assert store.outcomes("k", [1]) == {1: Outcome(1, 1, 0, 2)}
    assert list(store.reservations()) == [Row("k", 1, 1, 1, 0, 2)]
    for change in (
        Change(reserved=[Move("l", 1, 1, one, one._replace(reserved="l"))]),
        Change(answers=[answered("l", 1, one)]),
    ):
        with pytest.raises(Stale):
            store.append(change, [])
    store.append(Change(declined=[Move("k", 1, 1, after, one)]), [])
    assert store.heads([1]) == [one]
    assert store.waiting(1, 2) == []
    assert store.outcomes("k", [1]) == {1: Outcome(1, 1, DECLINED, 3)}
    assert Row("k", 1, 1, 0, DECLINED, 3) in store.rows()


def test_an_answer_ends_its_reservation(store: Backend) -> None:
    (one,) = store.heads([1])
    after = one._replace(reserved="k")
    store.append(Change(reserved=[Move("k", 1, 1, one, after)]), [])
    store.append(Change(answers=[answered("k", 1, after)]), [])
    assert store.heads([1])[0].reserved == ""
    assert store.outcomes("k", [1]) == {1: Outcome(1, 1, 1, 3)}


def test_who_is_closed_is_listed_once(store: Backend) -> None:
    one, two = store.heads([1, 2])
    store.append(Change(closed=[Move("", 1, 0, one, one._replace(closed=True))]), [])
    answer = answered("k", 2, two)
    answer = answer._replace(after=answer.after._replace(closed=True))
    store.append(Change(answers=[answer]), [])
    assert sorted(store.closures()) == [(1, 2), (2, 3)]
    assert [bool(head.closed) for head in store.heads([1, 2])] == [True, True]


def test_a_message_is_kept_once(store: Backend) -> None:
    kept = Kept(1, "d" * 64, "why", b"\0\xff")
    store.append(Change(kept=[kept]), [])
    assert store.kept() == [(kept, 2)]
    assert store.reason_kept(1, kept.digest) == "why"
    assert store.reason_kept(2, kept.digest) is None
    with pytest.raises(Stale):
        store.append(Change(kept=[kept]), [])


@pytest.mark.parametrize("name", sorted(SHARED))
def test_two_workers_see_each_other(name: str, tmp_path: Path) -> None:
    with STORES[name](tmp_path, POLICY) as (door, _):
        one, other = door(), door()
        one.append(Change(subjects=[ANN], queries=[QUERY], responses=[NO, YES]), [])
        (head,) = other.heads([1])
        one.append(Change(answers=[answered("k", 1, head)]), [])
        with pytest.raises(Stale):
            other.append(Change(answers=[answered("l", 1, head)]), [])
        assert other.tip() == one.tip()
        assert other.heads([1]) == one.heads([1])
        one.close()
        other.close()
