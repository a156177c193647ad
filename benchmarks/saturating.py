"""Saturating queries: on many values, and for many subjects, round after round."""

from __future__ import annotations

import time
from functools import partial
from random import Random
from typing import Any

import numpy as np

import expost as xp
from benchmarks.timing import best
from expost.saturation import equal_caps

SIZE = 100_000
LIMIT = 1.0
PEERS = 50


def run() -> bool:
    return all([_many_values(), _many_subjects(64, 100_000, 3.0), _many_subjects(64, 2_000, 0.5)])


def _many_values() -> bool:
    domain = xp.FiniteSet(range(SIZE))
    start = xp.Odometer(xp.Transcript(domain))
    once = start.add(xp.saturating(start, "value < 40000", cap=1), 1)
    hashed = start
    for index in range(6):
        hashed = hashed.add(
            xp.local_hashing(seed=f"{index:02x}", buckets=2, epsilon="0.2"), index % 2
        )
    print(f"a saturating query on {SIZE:,} values (limit {LIMIT:g} s)")
    within = True
    for name, odometer in (("after another one", once), ("after six hashes", hashed)):
        for shown, question in (("a statement", "value < 70000"), ("a set", range(0, SIZE, 2))):
            seconds = best(partial(xp.saturating, odometer, question, cap=2), runs=3)
            within &= seconds <= LIMIT
            print(f"  {name}, {shown:<12} {seconds:5.2f} s")
    return within


def _many_subjects(size: int, count: int, limit: float) -> bool:
    """Six yes-or-no questions; the peer is a session for each subject, of which some are run."""
    print(f"{count:,} subjects on {size} values, processor time of a round (limit {limit:g} s)")
    domain, filter_, random = xp.FiniteSet(range(size)), xp.BayesianFilter(epsilon=2), Random(1)
    panel = xp.Panel(
        domain, filter=filter_, subjects=range(count), source=xp.sampling.InsecureSource(3)
    )
    values = np.arange(count) % size
    sessions = [
        xp.Session(domain, int(value), filter=filter_, source=xp.sampling.InsecureSource(index))
        for index, value in enumerate(values[:PEERS].tolist())
    ]
    within, alone = True, 0.0
    for index, cap in enumerate(equal_caps(2, questions=6), 1):
        question = random.sample(range(size), size // 3)
        started = time.process_time()
        ids = panel.saturating(question, cap=cap)
        created = time.process_time()
        answered = bool(panel.ask(ids, values).answered.all())
        ended = time.process_time()
        _ask_alone(sessions, question, cap)
        alone = (time.process_time() - ended) * count / PEERS
        within &= answered and ended - started <= limit
        print(
            f"  question {index}: {len(set(ids)):3} queries made in {created - started:5.2f} s, "
            f"asked in {ended - created:5.2f} s; "
            f"sessions take {alone / (ended - started):,.0f} times as long"
        )
    return within


def _ask_alone(sessions: list[Any], question: list[int], cap: Any) -> None:
    for session in sessions:
        session.ask(xp.saturating(session, question, cap=cap))
