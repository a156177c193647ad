"""Chains: immutable, and linear in time."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from expost.chain import Chain


@given(st.lists(st.integers()), st.lists(st.integers()), st.lists(st.integers()))
def test_branches_never_see_each_other(
    common: list[int], left: list[int], right: list[int]
) -> None:
    start = Chain(common)
    first = second = start
    for item in left:
        first = first.plus(item)
    for item in right:
        second = second.plus(item)
    assert list(start) == common
    assert list(first) == common + left
    assert list(second) == common + right
    assert first == (*common, *left)
    assert (first == second) is (left == right)
    assert list(first[1:]) == [*common, *left][1:]
    assert hash(Chain(common)) == hash(start)


def test_threads_that_grow_one_chain_get_branches_of_their_own() -> None:
    start = Chain(range(100))
    results: list[Chain[int]] = []

    def grow(number: int) -> None:
        chain = start
        for _ in range(200):
            chain = chain.plus(number)
        results.append(chain)

    threads = [threading.Thread(target=grow, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for chain in results:
        assert len(set(chain[100:])) == 1
    assert len(start) == 100
