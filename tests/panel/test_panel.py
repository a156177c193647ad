"""A panel does for many subjects what a session does for one."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.filters import Filter
from expost.sampling import InsecureSource
from support import panel_cases
from support.stack_frames import text_with_locals

SMOKES = xp.FiniteSet(["no", "yes"])


def small(subjects: Any = ("a", "b", "c"), **options: Any) -> xp.Panel:
    guard = xp.BayesianFilter(epsilon=1)
    return xp.Panel(SMOKES, filter=guard, subjects=list(subjects), **options)


@pytest.mark.parametrize("guard", [xp.BayesianFilter("0.6"), xp.BasicFilter("0.8")], ids=repr)
def test_a_panel_decides_and_accounts_as_sessions_do(guard: Filter) -> None:
    generator = random.Random(3)
    domain = xp.FiniteSet(range(4))
    queries = {str(i): query for i, query in enumerate(panel_cases.families(4, "0.2"))}
    names = [f"subject {number}" for number in range(50)]
    panel = xp.Panel(
        domain, filter=guard, subjects=names, queries=queries, source=InsecureSource(1)
    )
    values = generator.choices(range(4), k=50)
    transcripts = {name: xp.Transcript(domain, guard) for name in names}
    for _ in range(10):
        who = generator.sample(range(50), 40)
        asked = generator.choices(list(queries), k=40)
        decisions = panel.decide(asked, [names[place] for place in who])
        replies = panel.ask(
            asked, [values[place] for place in who], [names[place] for place in who]
        )
        for row, (place, key) in enumerate(zip(who, asked, strict=True)):
            name = names[place]
            alone = guard.decide(transcripts[name], queries[key])
            assert alone.accepted == decisions.accepted[row] == replies.answered[row]
            assert alone.remaining == pytest.approx(decisions.remaining[row], abs=1e-12)
            assert decisions.remaining[row] <= alone.budget.nearest
            if alone.accepted:
                transcripts[name] = transcripts[name].add(queries[key], replies.responses[row])
            else:
                assert replies.responses[row] is None
                assert name in replies.refused
    loss, peak = panel.loss, panel.peak
    for place, name in enumerate(names):
        assert panel.transcript(name) == transcripts[name]
        odometer = xp.Odometer(transcripts[name])
        exact = odometer.exact_loss.enclosure
        assert loss.lower[place] <= exact.upper
        assert exact.lower <= loss.upper[place]
        assert odometer.peak.lower <= peak.upper[place] + 1e-15
        assert peak.lower[place] <= odometer.peak.upper
    assert not panel.suspended.any()


@pytest.mark.parametrize("kind", [xp.BayesianFilter, xp.SimplifiedFilter, xp.BasicFilter])
def test_no_upper_end_is_above_a_budget_that_every_response_respected(kind: Any) -> None:
    # Six responses use up the budget exactly, so rounding errors would show above it.
    query, guard = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), kind(ratio=3**6)
    domain, names = xp.FiniteSet(["no", "yes"]), range(300)
    panel = xp.Panel(domain, filter=guard, subjects=names, source=InsecureSource(7))
    for _ in range(30):
        panel.ask(query, ["yes"] * 300)
    limit = guard.budget.enclosure.upper
    assert panel.loss.upper.max() == panel.peak.upper.max() == limit
    assert (panel.loss.lower <= panel.loss.upper).all()
    answers = panel.answers()
    audited = xp.audit(answers, filter=guard).frame
    assert audited["upper"].max() == audited["peak"].max() == limit
    if kind is xp.BasicFilter:
        assert panel.spent.upper.max() == audited["basic"].max() == limit
    else:
        assert panel.spent.upper.max() > limit
    found = xp.audits.against_budget(answers, xp.realized_losses(answers), guard)
    assert found.over_budget == 0
    assert found.losses.upper.max() <= limit


def test_a_loss_above_the_budget_is_never_capped() -> None:
    query, guard = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.BayesianFilter(ratio=9)
    panel = xp.Panel(xp.FiniteSet(["no", "yes"]), filter=guard, subjects=["a", "b"])
    for _ in range(3):
        panel.record(query, [0], ["a"])
    panel.record(query, [0, 0], ["b", "b"])
    limit = guard.budget.enclosure.upper
    assert panel.suspended.tolist() == [True, False]
    assert panel.loss.upper[0] >= panel.loss.lower[0] > limit
    assert panel.loss.upper[1] == panel.peak.upper[1] == limit


def test_a_seeded_panel_repeats_itself_and_draws_what_the_pmf_says() -> None:
    first, second = (
        xp.Panel(SMOKES, filter=xp.BasicFilter(9), subjects=range(4000), source=InsecureSource(4))
        for _ in range(2)
    )
    query, values = xp.randomized_response(epsilon=1), ["no", "yes"] * 2000
    replies = first.ask(query, values)
    assert replies.responses == second.ask(query, values).responses
    told = sum(a == b for a, b in zip(replies.responses, values, strict=True))
    # e/(1 + e) of 4000 are 2924, and the standard deviation is 28.
    assert abs(told - 2924) < 5 * 28


def test_what_devices_sent_is_kept_and_closes_who_went_too_far() -> None:
    panel, query = small(), xp.randomized_response(epsilon="0.6")
    assert panel.record(query, ["no", "yes", "no"]).all()
    found = panel.record(query, ["no", "no"], ["a", "b"])
    assert found.tolist() == [False, False]
    assert panel.suspended.tolist() == [True, True, False]
    # The second answer of b took its loss back to nothing; it was seen nevertheless.
    assert panel.exchanges.tolist() == [2, 2, 1]
    assert panel.loss.upper[1] < 1e-12
    assert panel.peak.upper[0] > 1.19
    weak = xp.randomized_response(epsilon="0.1")
    assert panel.decide(weak).accepted.tolist() == [False, False, True]
    assert panel.decide(weak).remaining.tolist()[:2] == [0, 0]
    assert panel.ask(weak, ["no"] * 3).refused == ("a", "b")
    respected = xp.replay(panel.transcript("b"))
    assert (respected.respected, respected.first_refused) == (False, 2)


def test_two_responses_of_one_subject_in_one_call_are_decided_one_after_the_other() -> None:
    panel, query = small(), xp.randomized_response(epsilon="0.6")
    found = panel.record(query, ["no", "yes", "no", "no"], ["b", "a", "b", "c"])
    assert found.tolist() == [True, True, False, True]
    assert panel.suspended.tolist() == [False, True, False]
    assert [each.response for each in panel.transcript("b").exchanges] == ["no", "no"]


def test_answers_of_a_panel_are_those_of_its_transcripts() -> None:
    queries = {"often": xp.randomized_response("0.3"), "seldom": xp.randomized_response("0.9")}
    panel = small(queries=queries, source=InsecureSource(2))
    panel.ask("often", ["no", "yes"], ["a", "c"])
    panel.ask(["seldom", "often", "often"], ["no", "yes", "no"])
    answers = panel.answers()
    assert answers.subjects == ("a", "b", "c")
    for name in answers.subjects:
        assert list(answers.transcript(name).exchanges) == list(panel.transcript(name).exchanges)
    assert answers.unanswered == {"refused": frozenset({("a", "seldom")})}
    losses = xp.realized_losses(answers)
    np.testing.assert_allclose(losses.upper, panel.loss.upper, atol=1e-13)
    np.testing.assert_allclose(losses.basic, panel.spent.upper, rtol=1e-12)


SECRETS = xp.FiniteSet(["secret-one", "secret-two"])


def shows(error: BaseException) -> bool:
    """Whether a tool that prints the local variables of the package would show a value."""
    # The domain is public, and lists all values.
    return "secret-" in text_with_locals(error).replace(repr(SECRETS), "")


def test_nobody_sees_a_value() -> None:
    panel = xp.Panel(SECRETS, filter=xp.BayesianFilter(1), subjects=["a", "b"])
    query = xp.randomized_response(epsilon="0.5")
    for values in (
        ["secret-one", "secret-three"],
        ["secret-one"],
        "secret-one",
        {"a": "secret-one"},
    ):
        with pytest.raises(xp.InvalidInput) as caught:
            panel.ask(query, values)
        assert "secret-" not in str(caught.value)
        assert not shows(caught.value)
    assert panel.exchanges.sum() == 0

    class Broken:
        def below(self, limit: int) -> int:
            raise OSError("no randomness")

    panel = xp.Panel(SECRETS, filter=xp.BayesianFilter(1), subjects=["a", "b"], source=Broken())
    with pytest.raises(OSError, match="no randomness") as failed:
        panel.ask(query, ["secret-one", "secret-two"])
    assert not shows(failed.value)
    assert panel.exchanges.sum() == 0
    assert "secret" not in repr(panel)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda panel: panel.decide("q"), "unknown query"),
        (lambda panel: panel.decide(["q", "q", "r"]), "row 3: query: unknown query"),
        (lambda panel: panel.decide(["q"]), "1 ids for 3 subjects"),
        (lambda panel: panel.decide(7), "must be a query, the id of one, or a column of ids"),
        (lambda panel: panel.decide("w", ["a", "x"]), "subjects: row 2: no subject"),
        (lambda panel: panel.decide("w", ["a", "a"]), "subjects: 'a' appears twice"),
        (lambda panel: panel.record("w", ["no", "maybe", "no"]), "row 2: response"),
        (lambda panel: panel.record("w", ["no"]), "responses: got 1 for 3 subjects"),
        (lambda panel: panel.ask("w", ["no"]), "values: got 1 for 3 subjects"),
        (lambda panel: panel.transcript("x"), "subject: no subject"),
        (lambda panel: panel.transcript(["a"]), "subject: no subject"),
        (lambda panel: panel.decide("w", np.array(3)), "subjects: must be a list"),
        (lambda panel: panel.decide(np.array(3)), "must be a query, the id of one, or a column"),
        (lambda panel: panel.record("w", np.array(3)), "must be a list"),
        (lambda panel: panel.saturating(["no"], cap=np.array(1)), "cap: must be a list"),
        (lambda panel: panel.answers(), "no subject has answered anything"),
        (lambda panel: copy.copy(panel), "spend every budget again"),
    ],
)
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    panel = small(queries={"w": xp.randomized_response(1)})
    if message.startswith("row 3"):
        panel = small(queries={"q": xp.randomized_response(1)})
    with pytest.raises((xp.InvalidInput, TypeError), match=message):
        call(panel)
    assert panel.exchanges.sum() == 0


@pytest.mark.parametrize("queries", [np.array(["w"]), np.array([]), [], 0])
def test_queries_that_are_no_mapping_are_refused(queries: Any) -> None:
    with pytest.raises(xp.InvalidInput, match="queries: must be queries by their ids"):
        small(queries=queries)


def test_a_subject_that_no_file_can_name_is_refused() -> None:
    with pytest.raises(xp.InvalidInput, match="subjects: is not valid Unicode text"):
        small(subjects=["a", "\ud800"])


def test_a_query_has_one_name() -> None:
    query, same = xp.randomized_response(1), xp.randomized_response("1.0")
    with pytest.raises(
        xp.InvalidInput, match=r"queries\.second: is a second name: this query is called 'first'"
    ):
        small(queries={"first": query, "second": same})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (xp.randomized_response(2).content_id, "has the form of a content id"),
        ("0" * 64, "has the form of a content id"),
        ("", "a query's name must not be empty"),
    ],
)
def test_a_name_that_another_query_could_need_is_refused(name: str, message: str) -> None:
    query = xp.randomized_response(1)
    with pytest.raises(xp.InvalidInput, match=message):
        small(queries={name: query})
    assert list(small(queries={query.content_id: query}).queries) == [query.content_id]


@pytest.mark.parametrize("step", [0, -1])
def test_steps_before_the_first_are_refused_by_every_verb(step: int) -> None:
    domain = xp.Attributes(smokes=xp.changing(["no", "yes"]))
    panel = xp.Panel(domain, filter=xp.BayesianFilter(1), subjects=["a"])
    query, values = xp.randomized_response("1/2"), [[{"smokes": "no"}]]
    for call in (
        lambda: panel.decide(query.about("smokes", at=step)),
        lambda: panel.record(query.about("smokes", at=step), ["no"]),
        lambda: panel.ask(query.about("smokes", at=step), values),
        lambda: panel.saturating(f"smokes at {step}", cap="1/2"),
        lambda: xp.Transcript(domain).add(query.about("smokes", at=step), "no"),
    ):
        with pytest.raises(xp.InvalidInput, match=f"at: steps are numbered from 1; got {step}"):
            call()
    assert panel.exchanges.sum() == 0
    assert panel.ask(query.about("smokes", at=1), values).answered.all()


def test_a_query_that_needs_a_delta_needs_a_filter_with_one() -> None:
    panel = xp.Panel(xp.FiniteSet([0, 1]), filter=xp.BayesianFilter(9), subjects=["a"])
    noisy = xp.gaussian({"value": 1}, range=(0, 1), sigma="1", grid="0.5")
    with pytest.raises(xp.InvalidInput, match="needs a filter with a delta"):
        panel.decide(noisy)


def test_what_fails_while_it_is_recorded_ends_the_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    panel, query = small(), xp.randomized_response(epsilon="0.1")

    def fail(*arguments: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(panel._state.log, "add", fail)
    with pytest.raises(MemoryError):
        panel.ask(query, ["no"] * 3)
    with pytest.raises(xp.InvalidInput, match="an earlier recording failed"):
        panel.ask(query, ["no"] * 3)


def test_nobody_goes_on_after_responses_that_arrived_were_counted_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    panel, query = small(), xp.randomized_response(epsilon="0.1")
    noisy = xp.gaussian({"value": 1}, range=(0, 1), sigma="1", grid="0.5")
    numbers = xp.Panel(xp.FiniteSet([0, 1]), filter=xp.BayesianFilter(9), subjects=["a"])
    # What cannot be taken in is an error, and breaks nothing.
    with pytest.raises(xp.InvalidInput, match="needs a filter with a delta"):
        numbers.record(noisy, [1])
    assert numbers.record(query, [1]).tolist() == [True]
    with pytest.raises(xp.InvalidInput, match="response"):
        panel.record(query, ["no", "perhaps"], ["a", "a"])
    assert panel.exchanges.sum() == 0
    decide, calls = panel._kernel.decide, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return decide(*arguments)

    monkeypatch.setattr(panel._kernel, "decide", interrupted)
    with pytest.raises(KeyboardInterrupt):
        panel.record(query, ["no", "yes"], ["a", "a"])
    with pytest.raises(xp.InvalidInput, match="an earlier recording failed"):
        panel.decide(query)
