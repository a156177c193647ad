"""How far everybody came, in columns and in lines, beside a dictionary of all of it."""

from __future__ import annotations

import hashlib
import itertools
import json
import random

import numpy as np
import pytest

from expost.ledger.packed import Packed
from expost.ledger.ranges import Ranges
from expost.ledger.reached import CLOSED, Reached, line_of, said_of, said_of_commits
from expost.ledger.records import Head, Tip


def head(sequence: int, number: int, *, closed: bool = False, reserved: str = "") -> Head:
    digest = hashlib.sha256(b"%d %d" % (number, sequence)).digest()
    return Head(sequence, digest, b"", closed, reserved, 0)


@pytest.mark.parametrize("seed", range(60))
def test_columns_say_what_a_dictionary_says(seed: int) -> None:
    """People answer, are reserved and closed, in rounds or one by one; then all is read again."""
    chance = random.Random(seed)
    people, closed = chance.choice([3, 30, 300]), set[int]()
    heads = dict.fromkeys(range(1, people + 1), 0)
    due: dict[int, tuple[int, str]] = {}
    whole = Reached()
    for commit in range(chance.randint(1, 12)):
        noted = Reached(Ranges([(commit + 1, commit + 1)]))
        start = chance.randint(1, people)
        stop = start if chance.random() < 0.5 else chance.randint(start, people)
        own = [n for n in range(start, stop + 1) if n not in closed]
        if chance.random() < 0.7:
            for number in own:
                heads[number] += 1
            chance.shuffle(own)
            digests = Packed([head(heads[n], n).digest for n in own])
            noted.answered(np.array(own, dtype=int), np.array([heads[n] for n in own]), digests)
            due.update({n: (heads[n], head(heads[n], n).digest.hex()[:16]) for n in own})
        else:
            for number in own:
                shut = chance.random() < 0.3
                word = "" if shut else "key"
                noted.moved(number, head(heads[number], number, closed=shut, reserved=word))
                due[number] = (heads[number] + 1, CLOSED if shut else "")
                if shut:
                    closed.add(number)
        if own:
            assert noted.largest == max(own)
        whole.add(noted)
    assert whole.places == due
    line = line_of("policy", whole, Tip(12, b"r" * 32))
    again = said_of(line)
    assert again.places == due
    assert list(again.commits) == list(whole.commits)
    assert said_of(line_of("policy", again, Tip(12, b"r" * 32))).places == due
    assert said_of_commits(line)[0]["commits"] == 12


def test_names_are_what_they_were_whatever_they_have() -> None:
    whole = Reached(Ranges([(1, 1)]))
    names = [
        "ann",
        7,
        -(1 << 60),
        "two\nlines",
        'a " b \\n',
        ", ",
        "[]",
        '], "heads": [',
        "\u2028é\x00",
        "😀",
        "\\",
    ]
    whole.names.update({number: json.dumps(name) for number, name in enumerate(names, 1)})
    line = line_of("policy", whole, Tip(1, b"r" * 32))
    assert said_of(line).names == whole.names
    assert line_of("policy", said_of(line), Tip(1, b"r" * 32)) == line
    assert said_of(line_of("policy", Reached(), Tip(1, b"r" * 32))).names == {}


def test_names_of_several_lines_are_put_together() -> None:
    """One of them alone is taken as it is, two are not; nobody is there twice."""
    lines = []
    for own in (range(1, 4), range(3, 6), ()):
        part = Reached()
        part.names.update({number: json.dumps(f"number {number}") for number in own})
        lines.append(line_of("policy", part, Tip(1, b"r" * 32)))
    due = {number: json.dumps(f"number {number}") for number in range(1, 6)}
    for order in itertools.permutations(lines):
        whole = line_of("policy", said_of(b"".join(order)), Tip(1, b"r" * 32))
        assert whole.count(b"number 3") == 1
        assert said_of(whole).names == due
        more = Reached()
        more.names[6] = '"number 6"'
        said = said_of(whole)
        said.add(more)
        assert said_of(line_of("policy", said, Tip(1, b"r" * 32))).names == due | more.names


def test_a_round_over_neighbours_takes_one_entry() -> None:
    whole = Reached()
    for sequence in (1, 2):
        own = range(1, 1001)
        digests = Packed([head(sequence, number).digest for number in own])
        whole.answered(np.array(own), np.full(1000, sequence), digests)
    assert [(number, sequence, len(heads)) for number, sequence, heads in whole.runs()] == [
        (1, 2, 16_000)
    ]


def test_a_line_that_comes_late_takes_nothing_back() -> None:
    """The reservation of another process, in a line after the one about its answer."""
    answer, reservation = Reached(), Reached()
    answer.answered(np.array([1]), np.array([6]), Packed([head(6, 1).digest]))
    reservation.moved(1, head(5, 1, reserved="key"))
    for first, second in ((answer, reservation), (reservation, answer)):
        text = b"".join(line_of("policy", each, Tip(9, b"")) for each in (first, second))
        assert said_of(text).places == {1: (6, head(6, 1).digest.hex()[:16])}
