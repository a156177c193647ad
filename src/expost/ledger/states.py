"""What subjects answered so far, as the kernel decides on it: from tallies, without an exchange."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.ledger.tallies import Tallies
from expost.ledger.words import Words
from expost.panel.kernel import Kernel, groups
from expost.panel.state import State

__all__ = ["state_of"]

Ints = NDArray[np.int64]

# Numbers of responses up to this one are looked up in a table, however few there are.
_SMALL = 1 << 12
# The most counts that are written out as a table, over all subjects of a state.
_LARGEST_TABLE = 1 << 22


def state_of(tallies: Tallies, kernel: Kernel, words: Words) -> State:
    """The state of the subjects of some tallies, all of whose responses are known."""
    count, state = len(tallies), kernel.start(len(tallies))
    if not len(tallies.which):
        return state
    for number, places in groups(words.question_of(tallies.which)):
        own = slice(None) if len(places) == len(tallies.which) else places
        if count == 1:  # each response is there once, in order
            which, table = tallies.which[own], tallies.times[own][:, None]
        else:
            which, place = _distinct(tallies.which[own])
            if len(which) * count > _LARGEST_TABLE:
                return _by_turns(tallies, kernel, words)
            counts = np.zeros(len(which) * count, dtype=np.int64)
            counts[place * count + tallies.whose[own]] = tallies.times[own]
            table = counts.reshape(len(which), count)
        state.load(kernel.questions[number], words.positions_of(which), table)
    return state


def _by_turns(tallies: Tallies, kernel: Kernel, words: Words) -> State:
    """The same one response after the other, where a query has very many of them."""
    state = kernel.start(len(tallies))
    whose, which = (np.repeat(each, tallies.times) for each in (tallies.whose, tallies.which))
    turn = np.arange(len(whose)) - np.searchsorted(whose, whose)
    for each in range(int(turn.max(initial=-1)) + 1):
        own = np.flatnonzero(turn == each)
        numbers = words.question_of(which[own])
        kernel.fold(state, numbers, words.positions_of(which[own]), whose[own])
    return state


def _distinct(numbers: Ints) -> tuple[Ints, NDArray[np.intp]]:
    """The different numbers in order, and which each is; without sorting, unless they are large."""
    last = int(numbers.max())
    if last > _SMALL + len(numbers):
        return np.unique(numbers, return_inverse=True)
    place = np.zeros(last + 1, dtype=np.intp)
    place[numbers] = 1
    which = place.nonzero()[0]
    place[which] = np.arange(len(which))
    return which, place[numbers]
