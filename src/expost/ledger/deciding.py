"""What the filter says of heads, by their tallies.

It depends on the tally and on the query, and on nothing else. So what it said of a tally is
remembered, for a while: where people are asked one by one, most of a decision is the cost of arrays
that have one entry.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expost.ledger.states import state_of
from expost.ledger.tallies import Tallies
from expost.ledger.words import Words
from expost.panel.kernel import Kernel, Verdicts
from expost.panel.state import State

__all__ = ["Deciding", "decided"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# With more rows than this, arrays take less than looking up.
_FEW = 32
# The most that is remembered.
_MOST = 1 << 14
# Of many, so many are looked at to see whether they are alike.
_LOOK = 256


def decided(kernel: Kernel, state: State, questions: Ints) -> Verdicts:
    """What the filter says of everybody in a state, by the kernel's numbers of questions."""
    same = len(questions) == 1 or (len(questions) and (questions == questions[0]).all())
    return kernel.decide(state, int(questions[0]) if same else questions)


class Deciding:
    """A filter, and what it said of tallies."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._known: dict[tuple[bytes, int], bool] = {}
        """Whether a question is accepted after a tally, by the number that the kernel gave it."""

    def accepted(self, tallies: Tallies, queries: Ints, words: Words) -> Bools:
        """Whether each query is accepted after a tally, all of whose responses are known."""
        questions = words.questions(queries)
        if len(tallies) > _FEW:
            return self._many(tallies, questions, words)
        known, pairs = self._known, list(zip(tallies, questions.tolist(), strict=True))
        verdicts = [known.get(pair) for pair in pairs]
        new = [place for place, verdict in enumerate(verdicts) if verdict is None]
        if new:
            if len(known) > _MOST:
                known.clear()
            left = Tallies([tallies[place] for place in new])
            found = self._worked_out(left, questions[new], words)
            for place, verdict in zip(new, found.tolist(), strict=True):
                known[pairs[place]] = verdicts[place] = verdict
        return np.array(verdicts, dtype=np.bool_)

    def _many(self, tallies: Tallies, questions: Ints, words: Words) -> Bools:
        """Decided once for all who are alike, if a look at some of them says that it is worth it.

        After saturating answers nearly all are; after other ones hardly two.
        """
        if 2 * len(set(tallies[:_LOOK])) > len(tallies[:_LOOK]):
            return self._worked_out(tallies, questions, words)
        numbers: dict[tuple[bytes, int], int] = {}
        pairs = zip(tallies, questions.tolist(), strict=True)
        which = np.array([numbers.setdefault(pair, len(numbers)) for pair in pairs])
        different, asked = zip(*numbers, strict=True)
        return self._worked_out(Tallies(different), np.array(asked), words).take(which)

    def _worked_out(self, tallies: Tallies, questions: Ints, words: Words) -> Bools:
        return decided(self._kernel, state_of(tallies, self._kernel, words), questions).accepted
