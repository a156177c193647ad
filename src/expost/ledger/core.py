"""Check, sample, record durably, release: for all requests that wait, in one commit.

Everything here is done by one thread at a time. What it is given is only what decides: a backend,
a source of randomness, a checkpoint, and perhaps ``step``, which is told where it is and may end
it there, as a simulation does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import accumulate, compress, pairwise

import numpy as np
from numpy.typing import NDArray

from expost.errors import ExpostError, InvalidInput
from expost.ledger.backend import Backend, Looked, Row, Stale
from expost.ledger.checkpoint import Checkpoint
from expost.ledger.deciding import Deciding, decided
from expost.ledger.digests import first_head, next_head
from expost.ledger.errors import Broken, Damaged
from expost.ledger.lines import lines_of
from expost.ledger.people import People
from expost.ledger.policy import StudyPolicy
from expost.ledger.reached import Reached
from expost.ledger.recent import Recent
from expost.ledger.records import Answered, Change, Head, Heads, Outcome, Tip, joined
from expost.ledger.requests import Request, Situation, Undrawn, chained
from expost.ledger.saturating import ByTallies
from expost.ledger.states import state_of
from expost.ledger.tallies import Tallies
from expost.ledger.words import Words
from expost.panel.kernel import Kernel, Verdicts
from expost.panel.searching import Search
from expost.panel.state import State
from expost.panel.values import Values
from expost.queries import Query
from expost.sampling import Source
from expost.session.secret import without_frames

__all__ = ["Core"]

# After so many attempts to add something, it is asked whether anybody else does.
_TRIES = 20

# Subjects whose heads are read together.
_BLOCK = 1 << 15

Ints = NDArray[np.int64]
Step = Callable[[str], None]


class Core:
    """A ledger at work."""

    def __init__(
        self,
        backend: Backend,
        policy: StudyPolicy,
        checkpoint: Checkpoint,
        source: Source,
        search: Search | None = None,
        step: Step = lambda name: None,
    ) -> None:
        self.backend = backend
        self.policy = policy
        self.checkpoint = checkpoint
        self.kernel = Kernel(policy.domain, policy.filter, search)
        self.words = Words(self.kernel)
        self.words.read(backend)
        self._deciding = Deciding(self.kernel)
        self.saturating = ByTallies(self.kernel)
        self.people = People()
        self._recent = Recent()
        self._source = source
        self._step = step
        self.stopped = False
        """Whether a write failed or was interrupted."""
        self._overtaken = 0
        self._overtaken_at: Tip | None = None

    def serve(self, requests: Sequence[Request]) -> None:
        """Decide about all open rows of some requests, and record what becomes of them.

        No subject is in two of them. Outcomes, or an error, are set in each. They are durable when
        this returns.
        """
        self.check_whole()
        while True:
            asked = [(each.key, each.numbers) for each in requests]
            if not all(each.hopes for each in requests):
                self._recent.forget()  # who answers perhaps does so after the study was closed
            known = self._recent.look(asked)
            after = self._recent.tip if known else None
            try:
                found = self._situations(requests, known or self.backend.look(asked))
            except Stale:
                continue
            change = self._change(found)
            self._step("drawn")
            if change.empty or self.append(change, after):
                return

    def check_whole(self) -> None:
        """Refuse to go on after a write that failed or was interrupted.

        The connection may still see what it would have recorded, and nobody else ever will.
        """
        if self.stopped:
            raise Broken("an earlier write failed; open the ledger again")

    def foresee(self, requests: Sequence[Request]) -> None:
        """Refuse what is known to be wrong with any of several requests, before one is served."""
        ended = bool(self.backend.ended())
        for request in requests:
            outcomes = self.backend.outcomes(request.key, request.numbers)
            self._know(list(outcomes.values()), ())
            request.start(self.words)
            request.repeat(outcomes, self.words)
            rows = request.open
            if len(rows) and request.decides and ended:
                raise _closed()
            waiting = self.backend.waiting(min(request.numbers), max(request.numbers))
            rows = rows[np.isin(request.subjects[rows], waiting)]
            request.check(rows, Heads.of(self.backend.heads(request.subjects[rows].tolist())))

    def _change(self, found: Sequence[tuple[Request, Situation]]) -> Change:
        """What requests add. What draws has values and unreleased responses in its frames."""
        change = Change()
        try:
            self._draw([each for request, own in found for each in request.undrawn(own)])
            added = [request.add(change, own, self.words) for request, own in found]
            given = [each for each in added if each is not None]
            if given:
                change.answers = chained(given, self.words)
        except BaseException as error:
            raise without_frames(error) from None
        return change

    def _draw(self, undrawn: Sequence[Undrawn]) -> None:
        """Draw all responses to one query at once: for a few it takes as long as for one."""
        by_query: dict[int, list[Undrawn]] = {}
        for each in undrawn:
            by_query.setdefault(each.query, []).append(each)
        for query, own in by_query.items():
            question = self.kernel.questions[self.words.question(query)]
            places = Values.joined([each.values for each in own])
            positions: list[int] = question.draw(places, self._source).tolist()
            stops = accumulate(len(each.values) for each in own)
            for each, (start, stop) in zip(own, pairwise((0, *stops)), strict=True):
                each.take(positions[start:stop])

    def append(self, change: Change, after: Tip | None = None) -> bool:
        """Record a change in one commit, and perhaps a checkpoint; False if heads have moved.

        It may be one that must come ``after`` a commit, and no other; then it is False as well if
        it cannot be recorded now, for the outcome may be recorded already.
        """
        change.queries, change.responses = self.words.tentative()
        lines = lines_of(change, self.words.content_ids)
        noted = self._reached(change)
        self.stopped = True
        try:
            tip = self.backend.append(change, lines, after)
            self.words.settle()
            self._recent.note(change, lines, tip)
            self._step("committed")
            self.checkpoint.note(noted, tip)
            self._step("checkpointed")
        except (Stale, InvalidInput) as error:  # nothing was written
            self.stopped = False
            self._recent.forget()
            self.learn()
            if isinstance(error, InvalidInput) and after is None:
                raise
            self._check_overtaken()
            return False
        except BaseException as error:
            # The frames hold responses that are perhaps not recorded, and not released.
            raise without_frames(error) from None
        self.stopped, self._overtaken = False, 0
        return True

    def _check_overtaken(self) -> None:
        """Others are faster again and again only if they commit; else the database is damaged."""
        self._overtaken += 1
        if self._overtaken % _TRIES == 0:
            tip = self.backend.tip()
            if self._overtaken > _TRIES and tip == self._overtaken_at:
                raise Damaged("what is kept contradicts itself: nothing can be added")
            self._overtaken_at = tip

    def _reached(self, change: Change) -> Reached:
        """For whom something is recorded, and how far they are then."""
        result, answers = Reached(), Answered.of(change.answers)
        result.names.update({number: name for number, name, _ in change.subjects})
        result.answered(answers.numbers, answers.after.sequences, answers.after.digest)
        for place in compress(range(len(answers)), answers.after.closed):
            result.moved(answers.subjects[place], answers.after[place])
        for move in (*change.reserved, *change.closed):
            result.moved(move.subject, move.after)
        if result.largest > self.checkpoint.named:
            # Registered by another process, which perhaps was killed before it wrote who they are.
            result.names.update(self.backend.subjects(self.checkpoint.named))
        return result

    def introduce(self, queries: Collection[tuple[str, Query]]) -> None:
        """Have queries recorded by their names; without one, by their content ids."""
        while True:
            for name, query in queries:
                if self.words.queries.get(name, query) != query:
                    raise InvalidInput("is the name of another query", name)
                self.words.propose_query(query, name)
            if not self.words.tentative()[0] or self.append(Change()):
                return

    def show(self, commit: int | None = None) -> None:
        """Before anything of a commit is released: have a checkpoint, as for one of our own."""
        if commit is None:
            commit = self.backend.tip().commits
        self.checkpoint.show(commit, self.backend.tip)

    def begin(self) -> None:
        """Before something is recorded that draws nothing: what was interrupted left no words."""
        if self.words.unsettled:
            self.learn()

    def learn(self) -> None:
        """Forget words that are not recorded, and learn those that others recorded."""
        words = self.words.forget() if self.words.unsettled else self.words
        words.read(self.backend)
        self.words = words  # as a whole, for others may look

    def _situations(
        self, requests: Sequence[Request], found: Looked
    ) -> list[tuple[Request, Situation]]:
        """Where the subjects of open rows are, and what the filter says; errors are set."""
        heads = [Heads.of(each) for each in found.heads]
        self._know([outcome for outcomes in found.outcomes for outcome in outcomes.values()], heads)
        if any(found.outcomes):
            self._check_repeated(requests, found)
        waiting: list[tuple[Request, NDArray[np.intp], Heads]] = []
        for request, outcomes, own in zip(requests, found.outcomes, heads, strict=True):
            request.start(self.words)
            try:
                request.repeat(outcomes, self.words)
                rows = request.open
                if len(rows) and request.decides and found.ended:
                    raise _closed()
                left = own.some(rows.tolist())
                request.check(rows, left)
                request.propose(self.words)
            except ExpostError as error:
                request.error = without_frames(error)
                continue
            if len(rows):
                waiting.append((request, rows, left))
        deciding = [each for each in waiting if each[0].decides]
        verdicts = iter(self._accepted(deciding) if deciding else ())
        self._step("decided")
        return [
            (request, Situation(rows, own, next(verdicts) if request.decides else _ones(len(rows))))
            for request, rows, own in waiting
        ]

    def _accepted(
        self, waiting: Sequence[tuple[Request, NDArray[np.intp], Heads]]
    ) -> list[NDArray[np.bool_]]:
        """Whether the filter accepts, for some rows of each request; who is closed is refused."""
        tallies = Tallies.of(joined([own.tally for _, _, own in waiting]))
        closed = joined([own.closed for _, _, own in waiting])
        asked = [request.queries[rows] for request, rows, _ in waiting]
        queries = asked[0] if len(asked) == 1 else np.concatenate(asked)
        accepted = self._deciding.accepted(tallies, queries, self.words)
        if any(closed):
            accepted &= ~np.array(closed, dtype=np.bool_)
        stops = list(accumulate(map(len, asked)))
        return [accepted[start:stop] for start, stop in pairwise((0, *stops))]

    def _know(self, outcomes: Sequence[Outcome], heads: Sequence[Heads]) -> None:
        """Have all words that these use; before any new word gets a number."""
        response = max([found.response for found in outcomes], default=0)
        query = max([found.query for found in outcomes], default=0)
        if heads:
            tallies = Tallies.of(joined([own.tally for own in heads]))
            response = max(response, tallies.last_response)
        unknown = response > self.words.last_response or query > self.words.last_query
        if unknown or self.words.unsettled:
            self.learn()
        if not all(map(self.words.explains, outcomes)):
            raise Damaged("what became of a request is not what was recorded")

    def _check_repeated(self, requests: Sequence[Request], found: Looked) -> None:
        """What is repeated is what was recorded, and a rollback past it would be noticed.

        Rows of requests have no seals, but heads do: an answer has to be in the chain that leads to
        the head, and a reservation be the one that is open.
        """
        latest = 0
        for request, outcomes, heads in zip(requests, found.outcomes, found.heads, strict=True):
            for subject, head in zip(request.numbers, heads, strict=True):
                outcome = outcomes.get(subject)
                if outcome is None:
                    continue
                latest, key = max(latest, outcome.commit), request.key
                right = True
                if outcome.answered:
                    exchanges = self.chain(subject, head)[outcome.sequence - 1 :]
                    right = exchanges[:1] == [Row(key, subject, *outcome)]
                elif outcome.reserved:
                    right = (head.reserved, head.sequence + 1) == (key, outcome.sequence)
                    if not right and self.backend.outcomes(key, [subject]) != {subject: outcome}:
                        raise Stale  # its device has answered meanwhile
                if not right:
                    raise Damaged("what became of a request is not what was recorded")
        self.show(latest)

    def tallies(self, heads: Sequence[Head]) -> Tallies:
        """The tallies of some heads, all of whose responses are known."""
        columns = Heads.of(heads)
        self._know((), [columns])
        return columns.tally

    def packed(self, subjects: Sequence[int]) -> list[bytes]:
        """The tallies of some subjects in bytes, all of whose responses are known."""
        result: list[bytes] = []
        for start in range(0, len(subjects), _BLOCK):
            columns = Heads.of(self.backend.heads(subjects[start : start + _BLOCK]))
            self._know((), [columns])
            result += columns.tally
        return result

    def state(self, tallies: Tallies) -> State:
        return state_of(tallies, self.kernel, self.words)

    def decide_queries(
        self, state: State, asked: Sequence[Query], which: Ints, heads: Sequence[Head]
    ) -> Verdicts:
        """What the filter says, in a dry run.

        Whoever is closed is refused, and so is whoever has an open reservation, who would be asked
        nothing else.
        """
        # The last one is for whoever is asked nothing.
        numbers = np.array([*(self.kernel.number(query) for query in asked), -1])
        found = decided(self.kernel, state, numbers[which])
        free = np.array([not (head.closed or head.reserved) for head in heads], dtype=np.bool_)
        return Verdicts(found.accepted & free, found.undecided & free, found.lower, found.upper)

    def check_open(self) -> None:
        """Refuse to go on when the study is closed."""
        if self.backend.ended():
            raise _closed()

    def check_query(self, query: Query) -> None:
        """Refuse what cannot be asked here."""
        if self.policy.filter.pure and query.approximate:
            raise InvalidInput("needs a filter with a delta, such as ApproximateFilter")
        self.kernel.number(query)

    def finish(self) -> None:
        """Write a last checkpoint, if anything is not covered by one."""
        if not self.stopped:
            self.checkpoint.flush()

    def head_after(self, subject: int, sequence: int) -> bytes:
        """The head of a subject after some exchange."""
        (head,) = self.backend.heads([subject])
        return self._linked(subject, self.backend.exchanges(subject, head)[:sequence])

    def chain(self, subject: int, head: Head) -> list[Row]:
        """The exchanges of a subject, if its head says so."""
        exchanges = self.backend.exchanges(subject, head)
        if self._linked(subject, exchanges) != head.digest:
            raise Damaged(f"the chain of subject number {subject} is broken")
        return exchanges

    def _linked(self, subject: int, exchanges: Sequence[Row]) -> bytes:
        head = first_head(self.policy.content_id, self.people.name(self.backend, subject))
        if max((row.response for row in exchanges), default=0) > self.words.last_response:
            self.learn()
        for row in exchanges:
            if row.response <= 0 or not self.words.explains(Outcome(*row[2:])):
                raise Damaged(f"an exchange of subject number {subject} is not what was recorded")
            head = next_head(head, self.words.link(row.response), row.sequence)
        return head


def _ones(count: int) -> NDArray[np.bool_]:
    return np.ones(count, dtype=np.bool_)


def _closed() -> InvalidInput:
    return InvalidInput("the study is closed")
