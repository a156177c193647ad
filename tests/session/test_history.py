"""Sessions of subjects whose attributes change, in memory."""

from __future__ import annotations

import copy
import os
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import expost as xp
from expost.session._history import History
from expost.session._secret import Secret
from support.stack_frames import text_with_locals

SECRET = "the-secret-label"
PERSON = xp.Attributes(
    region=["north", "south", SECRET],
    smokes=xp.changing(["no", "yes", SECRET], times=1),
    drinks=xp.changing(xp.integers(0, 9), max_step=2),
)
CONSTANT = xp.Attributes(region=["north", SECRET], age=[1, 2])
FIRST = {"region": "north", "smokes": "no", "drinks": 0}
GUARD = xp.BayesianFilter(epsilon=500)
LOUD = xp.randomized_response(epsilon=40)  # a lie has a probability of 1e-17


def session(value: Any = FIRST) -> xp.Session:
    return xp.Session(PERSON, value, filter=GUARD, source=xp.sampling.InsecureSource(1))


def heard(subject: xp.Session, *names: str) -> list[object]:
    """What is answered for, at all steps so far, almost without noise."""
    transcript = subject.transcript
    answers: list[object] = [
        subject.ask(LOUD.about(*names, at=step)) for step in range(1, subject.step + 1)
    ]
    subject._odometer = xp.Odometer(transcript)
    return answers


def test_what_is_not_named_stays_and_steps_of_the_past_can_be_asked_about() -> None:
    subject = session()
    assert subject.step == 1
    subject.next(drinks=2)
    subject.next()
    subject.next({"smokes": "yes"}, drinks=1)
    assert subject.step == 4
    assert heard(subject, "drinks") == [0, 2, 2, 1]
    assert heard(subject, "smokes") == ["no", "no", "no", "yes"]
    assert heard(subject, "region", "smokes")[-1] == ("north", "yes")
    assert subject.ask(LOUD.about("region")) == "north"


def test_a_value_that_changes_too_often_is_frozen_and_nothing_shows() -> None:
    subject = session()
    shown = []
    for smokes in ("yes", "no", "yes", "yes"):
        subject.next(smokes=smokes)
        subject.ask(xp.channel([["1/2", "1/2"]] * 3).about("smokes", at=subject.step))
        shown.append((repr(subject), subject.decide(LOUD.about("smokes", at=1)).tree()))
    assert heard(subject, "smokes") == ["no", "yes", "yes", "yes", "yes"]
    calm = session()
    for step, (expected, decided) in enumerate(shown, 1):
        calm.next(smokes="yes" if step == 1 else "no")  # another one
        calm.ask(xp.channel([["1/2", "1/2"]] * 3).about("smokes", at=calm.step))
        assert repr(calm) == expected
        assert calm.decide(LOUD.about("smokes", at=1)).tree() == decided


def test_what_was_cut_to_a_largest_step_goes_on_towards_the_true_value() -> None:
    subject = session()
    subject.next(drinks=9)
    subject.next()  # which leaves it at nine
    subject.next(drinks=0)
    assert heard(subject, "drinks") == [0, 2, 4, 2]


def test_a_session_resumes_with_raw_or_with_frozen_records() -> None:
    transcript = xp.Transcript(PERSON, GUARD)
    domain = xp.Attributes(x=xp.changing([0, 1], times=1))
    for true in product([0, 1], repeat=4):
        known = xp.Transcript(domain, GUARD)
        subject = xp.Session.resume(known, [{"x": x} for x in true])
        frozen = heard(subject, "x")
        again = xp.Session.resume(known, [{"x": x} for x in frozen])
        assert heard(again, "x") == frozen
        moved = xp.Session(domain, {"x": true[0]}, filter=GUARD)
        for x in true[1:]:
            moved.next(x=x)
        assert heard(moved, "x") == frozen
    resumed = xp.Session.resume(transcript, [FIRST, {**FIRST, "smokes": "yes"}])
    resumed.next(smokes="no")
    assert (resumed.step, heard(resumed, "smokes")) == (3, ["no", "yes", "yes"])


def test_a_secret_that_is_behind_its_transcript_is_refused() -> None:
    subject = session()
    subject.next(smokes="yes")
    subject.ask(LOUD.about("smokes", at=2))
    behind = "it ends at step 1, but a query was about step 2"
    with pytest.raises(xp.InvalidInput, match=behind):
        xp.Session.resume(subject.transcript, [FIRST])
    xp.Session.resume(subject.transcript, [FIRST, FIRST])


def test_a_constant_record_is_given_as_it_is_and_has_no_next_step() -> None:
    record = {"region": SECRET, "age": 1}
    for subject in (
        xp.Session(CONSTANT, record, filter=GUARD),
        xp.Session.resume(xp.Transcript(CONSTANT, GUARD), record),
        xp.Session(xp.FiniteSet([SECRET, "b"]), SECRET, filter=GUARD),
        xp.Session(xp.Box([(0, 1)]), [0.5], filter=GUARD),
    ):
        with pytest.raises(xp.InvalidInput, match="so there is no next step") as caught:
            subject.next(region=SECRET)
        assert not _mentions(caught.value)
        assert subject.step == 1


def _mentions(error: BaseException) -> bool:
    """Whether an error shows the secret, also where local variables are printed with it."""
    return SECRET in text_with_locals(error)


OUTSIDE = SECRET + "?"
BAD: list[tuple[Callable[[xp.Session], object], str]] = [
    (lambda s: s.next(smokes=OUTSIDE), "the value of smokes is outside the domain (and is not"),
    (lambda s: s.next(drinks=SECRET), "the value of drinks is outside the domain (and is not"),
    (lambda s: s.next(smoke=SECRET), "in case it is a value); known: region, smokes, drinks"),
    (lambda s: s.next({SECRET: "smokes"}), "unknown attribute (name not shown"),
    (lambda s: s.next(region=SECRET), "region: this attribute does not change"),
    (lambda s: s.next([SECRET]), "must be the attributes that changed, not list"),  # type: ignore[arg-type]
    (lambda s: session({**FIRST, "smokes": OUTSIDE}), "the value of smokes is outside"),
    (
        lambda s: session({**FIRST, SECRET: 1}),
        "a record must have exactly the attributes region, smokes, drinks",
    ),
    (lambda s: session(SECRET), "a record must have exactly the attributes region, smokes, drinks"),
    (lambda s: resumed({**FIRST, "smokes": SECRET}), "must be a list of records, one for each"),
    (lambda s: resumed([]), "must be a list of records, one for each step so far"),
    (lambda s: resumed([FIRST, {**FIRST, "smokes": OUTSIDE}]), "step 2: the value of smokes is"),
    (lambda s: resumed([FIRST, {**FIRST, "region": SECRET}]), "step 2: region differs from the"),
    (
        lambda s: s.ask(LOUD.about("smokes", at=2)),
        "at: step 2 is in the future; the history is at step 1",
    ),
    (
        lambda s: s.decide(LOUD.about("smokes", at=2)),
        "at: step 2 is in the future; the history is at step 1",
    ),
    (lambda s: s.ask(LOUD.about("smokes", at=0)), "at: steps are numbered from 1"),
    (lambda s: s.ask(LOUD.about("smokes")), "at: smokes changes from step to step; name"),
    (lambda s: s.ask(LOUD.about("region", at=9)), "at: region does not change; leave"),
]


def resumed(value: Any) -> xp.Session:
    return xp.Session.resume(xp.Transcript(PERSON, GUARD), value)


@pytest.mark.parametrize(("attempt", "message"), BAD, ids=[message for _, message in BAD])
def test_bad_input_is_one_line_that_shows_no_value_and_changes_nothing(
    attempt: Callable[[xp.Session], object], message: str
) -> None:
    subject = session()
    with pytest.raises(xp.InvalidInput) as caught:
        attempt(subject)
    assert message in str(caught.value)
    assert "is outside" not in message or isinstance(caught.value, xp.errors.OutsideDomain)
    assert not _mentions(caught.value)
    assert (subject.step, len(subject.transcript)) == (1, 0)
    subject.next(smokes=SECRET)
    assert heard(subject, "smokes") == ["no", SECRET]


def test_neither_reprs_nor_interrupts_show_a_history(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = session({**FIRST, "smokes": SECRET})
    for shown in (repr(subject), subject._repr_html_(), repr(subject._value)):
        assert SECRET not in shown
        assert "2, 0" not in shown  # its places

    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "_append_step", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        subject.next(smokes=SECRET)
    assert not _mentions(caught.value)


def test_neither_a_session_nor_a_secret_is_copied() -> None:
    for copier in (copy.copy, copy.deepcopy, pickle.dumps):
        for kept in (session(), session()._value, Secret(SECRET)):
            with pytest.raises(TypeError, match="is not copied"):
                copier(kept)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # it is what this is about
def test_a_forked_session_has_no_next_step() -> None:
    subject = session()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            subject.next()
        except xp.InvalidInput:
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
