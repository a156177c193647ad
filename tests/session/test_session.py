"""Sessions: check, sample, record, release; and never show the secret."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest

import expost as xp
from expost.filters._decision import Decision
from expost.queries import Query
from expost.session._secret import Secret
from support.stack_frames import text_with_locals

SECRET = "the-secret-label"
DOMAIN = xp.FiniteSet(["a", "b", SECRET])
QUERY = xp.randomized_response(epsilon="0.5")


def session(value: object = SECRET, seed: int = 1, budget: str = "2") -> xp.Session:
    guard = xp.BayesianFilter(epsilon=budget)
    return xp.Session(DOMAIN, value, filter=guard, source=xp.sampling.InsecureSource(seed))


def test_a_session_answers_until_the_budget_is_met_and_never_beyond() -> None:
    subject = session()
    answered = 0
    while subject.decide(QUERY).accepted and answered < 10_000:
        subject.ask(QUERY)
        answered += 1
        assert len(subject.transcript) == answered
    with pytest.raises(xp.BudgetExceeded) as caught:
        subject.ask(QUERY)
    assert answered >= 4
    assert len(subject.transcript) == answered
    assert subject.loss.upper <= 2
    error = caught.value
    assert error.loss == subject.loss
    assert error.loss_at_worst.lower > 2
    assert error.budget.rational == 2
    assert str(error).startswith("query refused: loss is")
    assert "budget of 2." in str(error)


def test_a_refusal_changes_nothing_and_says_what_would_fit() -> None:
    subject = session(budget="0.75")
    subject.ask(QUERY)
    before = subject.transcript
    with pytest.raises(
        xp.BudgetExceeded, match=r"epsilon at most 0\.25 would be accepted"
    ) as caught:
        subject.ask(QUERY)
    assert subject.transcript is before
    assert caught.value.fits == Decimal("0.25")
    subject.ask(xp.randomized_response(epsilon=caught.value.fits))
    assert len(subject.transcript) == 2


def test_decisions_and_their_bytes_are_the_same_for_every_secret() -> None:
    class Fixed:
        """Gives the first or the last response of a channel, whatever the value."""

        def __init__(self) -> None:
            self.last = False

        def below(self, limit: int) -> int:
            self.last = not self.last
            return limit - 1 if self.last else 0

    seen = set()
    channel = xp.channel([["1/2", "1/2"], ["1/3", "2/3"], ["1/4", "3/4"]])
    score = xp.perturbation([0, 0.5, 1], epsilon="0.5")
    for value in DOMAIN.values:
        shown = b""
        for kind in (xp.BasicFilter, xp.SimplifiedFilter, xp.BayesianFilter):
            subject = xp.Session(DOMAIN, value, filter=kind(3), source=Fixed())
            for asked in (channel, score, channel):
                subject.ask(asked)
                for query in (channel, QUERY, score, QUERY):
                    shown += json.dumps(subject.decide(query).tree(), default=str).encode()
                shown += subject.transcript.content_id.encode() + repr(subject).encode()
        seen.add(shown)
    assert len(seen) == 1


def _mentions(error: BaseException, secret: str) -> bool:
    # The domain is public, and lists all values.
    return secret in text_with_locals(error).replace(repr(DOMAIN), "")


def test_the_secret_is_not_in_reprs_errors_or_tracebacks() -> None:
    subject = session()
    subject.ask(xp.channel([["1/2", "1/2"]] * 3))
    assert SECRET not in repr(subject)
    with pytest.raises(xp.BudgetExceeded) as refused:
        subject.ask(xp.randomized_response(epsilon=3))
    assert not _mentions(refused.value, SECRET)
    outside = "not-in-the-domain"
    with pytest.raises(xp.errors.OutsideDomain) as caught:
        session(outside)
    assert outside not in str(caught.value)
    assert not _mentions(caught.value, outside)


def test_a_session_is_not_copied() -> None:
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="holds a secret"):
            copier(session())


def test_a_session_resumes_from_its_transcript() -> None:
    first = session()
    first.ask(QUERY)
    second = xp.Session.resume(first.transcript, SECRET, source=xp.sampling.InsecureSource(2))
    assert second.loss == first.loss
    assert second.remaining == first.remaining
    second.ask(QUERY)
    assert second.transcript.exchanges[0] == first.transcript.exchanges[0]
    with pytest.raises(xp.InvalidInput, match="names no filter"):
        xp.Session.resume(xp.Transcript(DOMAIN), SECRET)


def test_a_greedy_analyst_has_another_turn_after_a_refusal() -> None:
    small = xp.randomized_response(epsilon="0.125")
    asked: list[Query] = []

    def analyst(transcript: xp.Transcript, decide: Callable[[Query], Decision]) -> Query:
        asked.append(small if asked and not decide(QUERY).accepted else QUERY)
        return asked[-1]

    transcript = xp.session.interact(analyst, session(budget="0.75"))
    exact = [exchange.query.epsilon for exchange in transcript.exchanges]
    assert Fraction(1, 2) in exact
    assert Fraction(1, 8) in exact


def test_an_analyst_who_insists_on_a_refused_query_comes_to_an_end() -> None:
    transcript = xp.session.interact(lambda transcript, decide: QUERY, session(budget="0.75"))
    assert len(transcript) == 1


def test_the_default_source_is_the_operating_system() -> None:
    subject = xp.Session(xp.FiniteSet([0, 1]), 1, filter=xp.BayesianFilter(1000 / 2))
    answers = [subject.ask(xp.randomized_response(epsilon=5)) for _ in range(60)]
    # The truth has probability 0.993; fewer than 40 of 60 happens once in 10^27.
    assert answers.count(1) > 40


def test_so_does_one_who_builds_the_refused_query_anew_each_time() -> None:
    def analyst(transcript: xp.Transcript, decide: Callable[[Query], Decision]) -> Query:
        return xp.randomized_response(epsilon="0.5")

    assert len(xp.session.interact(analyst, session(budget="0.75"))) == 1


def test_an_analyst_who_gives_something_else_is_told_so() -> None:
    with pytest.raises(xp.InvalidInput, match="must be a query or HALT"):
        xp.session.interact(lambda transcript, decide: None, session())  # type: ignore[arg-type, return-value]


def test_wrong_kinds_of_argument_are_one_line_without_the_value() -> None:
    guard = xp.BayesianFilter(1)
    subject = session()
    attempts: list[Callable[[], object]] = [
        lambda: subject.ask("question"),  # type: ignore[arg-type]
        lambda: subject.decide(None),  # type: ignore[arg-type]
        lambda: guard.decide(DOMAIN, QUERY),
        lambda: xp.Session(DOMAIN, SECRET, filter=xp.BayesianFilter),  # type: ignore[arg-type]
        lambda: xp.Session(DOMAIN, SECRET, filter=guard, source=8),  # type: ignore[arg-type]
        lambda: xp.Session(["a"], SECRET, filter=guard),  # type: ignore[arg-type]
        lambda: xp.Session.resume("t.json", SECRET),  # type: ignore[arg-type]
        lambda: xp.Transcript(DOMAIN, "bayesian"),  # type: ignore[arg-type]
        lambda: xp.Transcript(DOMAIN).add("question", 1),  # type: ignore[arg-type]
        lambda: xp.Odometer(DOMAIN),  # type: ignore[arg-type]
        lambda: xp.realized_loss("t.json"),
        lambda: xp.loss.worst_case_loss(DOMAIN, QUERY),  # type: ignore[arg-type]
        lambda: xp.load_transcript(None),  # type: ignore[arg-type]
    ]
    for attempt in attempts:
        with pytest.raises(xp.InvalidInput, match="must be") as caught:
            attempt()
        assert not _mentions(caught.value, SECRET)


def test_a_source_outside_its_range_is_refused() -> None:
    class Broken:
        def below(self, limit: int) -> int:
            return limit

    subject = xp.Session(DOMAIN, SECRET, filter=xp.BayesianFilter(1), source=Broken())
    with pytest.raises(ValueError, match="outside its range"):
        subject.ask(QUERY)
    assert len(subject.transcript) == 0


def test_a_refusal_crosses_process_boundaries() -> None:
    with pytest.raises(xp.BudgetExceeded) as caught:
        session(budget="0.1").ask(QUERY)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.fits == Decimal("0.1")
    assert again.loss_at_worst == caught.value.loss_at_worst


def test_a_decision_is_true_if_it_accepts() -> None:
    assert session().decide(QUERY)
    assert not session(budget="0.1").decide(QUERY)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # it is what this is about
def test_a_session_that_was_forked_refuses_to_answer() -> None:
    subject = session()
    subject._lock.acquire()  # as a thread that the new process has not would hold it
    child = os.fork()
    if child == 0:
        code = 1
        try:
            subject.ask(QUERY)
        except xp.InvalidInput as error:
            code = 0 if "started in another process" in str(error) else 2
        finally:
            os._exit(code)
    subject._lock.release()
    deadline = time.monotonic() + 5
    while not (ended := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    if not ended[0]:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    subject.ask(QUERY)


def test_a_secret_is_neither_copied_nor_pickled() -> None:
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="a secret is not copied"):
            copier(Secret(SECRET))


@pytest.mark.parametrize(
    ("guard", "budget"),
    [
        (xp.ApproximateFilter(epsilon=1, delta="1e-6"), "budget of 1 at delta 1e-06."),
        (
            xp.filters.CompositionFilter(ratio=3, delta="0.001", rule=xp.filters.Rogers()),
            "budget of 1.098612289, which is ln(3) at delta 0.001.",
        ),
        (xp.BayesianFilter(ratio=3), "budget of 1.098612289, which is ln(3)."),
    ],
)
def test_a_refusal_names_the_whole_budget(guard: xp.filters.Filter, budget: str) -> None:
    subject = xp.Session(xp.FiniteSet([0, 1]), 0, filter=guard)
    with pytest.raises(xp.BudgetExceeded) as refused:
        subject.ask(xp.randomized_response(epsilon=2))
    assert budget in str(refused.value)
    assert guard.limit in refused.value.decision._repr_html_()
