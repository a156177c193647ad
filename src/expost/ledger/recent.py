"""Where those are who answered lately, so that they are asked again without being looked up.

That is so for as long as nobody else commits. Nobody is answered or refused on the strength of it
alone: what is decided so is recorded only if the last commit is still the one after which it was
known. If not, or if it cannot be recorded now, everything is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence

from expost.ledger.backend import Looked
from expost.ledger.digests import next_root
from expost.ledger.records import Answered, Change, Head, Heads, Tip

__all__ = ["Recent"]

# Who answers in a larger commit is one of a round over many, and is not asked again at once.
_FEW = 128
# About the most heads that are remembered, and keys.
_MOST = 1 << 15


class Recent:
    """What the last commits of one ledger left, if nobody else has committed since the first."""

    def __init__(self) -> None:
        self._heads: dict[int, Head] = {}
        self.tip: Tip | None = None
        """The last of these commits."""
        self._keys: set[str] = set()
        """Of requests that this process recorded: who repeats one of these writes nothing."""

    def look(self, asked: Sequence[tuple[str, Sequence[int]]]) -> Looked | None:
        """What there is for requests whose keys are new; None unless all answered lately.

        The study is open, for only of what was asked while it was, anything is remembered.
        """
        known = self._heads
        if not known or not self._keys.isdisjoint([key for key, _ in asked]):
            return None
        try:
            heads = [Heads.of([known[each] for each in subjects]) for _, subjects in asked]
        except KeyError:
            return None
        return Looked([{} for _ in asked], heads, ended=False)

    def note(self, change: Change, lines: Sequence[bytes], tip: Tip) -> None:
        """A change was recorded, in the commit at the tip, which has these lines."""
        answers, before = Answered.of(change.answers), self.tip
        alone = before is not None and tip.root == next_root(before.root, lines)
        if not alone or not change.ordinary or len(answers) > _FEW or len(self._heads) > _MOST:
            self.forget()
        else:
            self._heads.update(zip(answers.subjects, answers.after, strict=True))
        self.tip = tip
        if len(self._keys) > _MOST:
            self._keys.clear()
        self._keys.update(answers.keys, [move.key for move in change.refused])

    def forget(self) -> None:
        """Somebody else has committed, perhaps."""
        self._heads.clear()
        self.tip = None
