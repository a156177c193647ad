"""The verbs of a ledger: kinds, idempotency keys, outcomes, columns of queries, and reading."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import expost as xp
from expost.answers import queries_from_json, queries_to_json
from expost.ledger import Ledger, Outcome, Round
from expost.report._study import summary_of
from expost.sampling import InsecureSource
from expost.saturation import equal_caps
from expost.saturation._saturating import saturating_query
from support.scripted_devices import (
    HALF,
    OTHER,
    QUARTER,
    SMOKES,
    ScriptedDevice,
    a_ledger,
    reserved,
)

WHOLE = xp.randomized_response(epsilon=1)
TOO_MUCH = xp.randomized_response(epsilon=3)
SCORE = xp.linear({"age": 0.01}, range=(0, 1), clip=True, epsilon="0.5")
BOX = xp.Box(age=(0, 100), weight=(30, 200))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with a_ledger(tmp_path) as made:
        made.register(["ann", "bob"])
        made.register(["sim", "sam"], kind="simulated")
        made.register(["paper"], kind="imported")
        yield made
        assert made.verify().good


def test_a_study_from_its_first_query_to_its_end(tmp_path: Path) -> None:
    with a_ledger(tmp_path, study="Smoking in the north") as ledger:
        assert ledger.register(["ann", "bob"]) == 2
        phones = [ScriptedDevice(ledger, name) for name in ("ann", "bob")]
        for week in range(3):
            outcomes = ledger.reserve(HALF, key=f"week {week}")
            for phone, outcome in zip(phones, outcomes, strict=True):
                if outcome.outcome == "reserved":
                    phone.send(ledger, response="yes")
        # 1/2 + 1/2 is all of the budget, and the third query does not fit.
        assert [each.outcome for each in outcomes] == ["refused", "refused"]
        assert ledger.rounds() == (
            Round("week 0", HALF.content_id, 2, 0, 0, 0),
            Round("week 1", HALF.content_id, 2, 0, 0, 0),
            Round("week 2", HALF.content_id, 0, 2, 0, 0),
        )
        status = ledger.status()
        assert status.exchanges.tolist() == [2, 2]
        assert status.loss.upper == pytest.approx(1)
        assert status.remaining == pytest.approx(0)
        answers = ledger.answers()
        assert answers.subjects == ("ann", "bob")
        assert (answers.unanswered or {})["refused"] == frozenset(
            (name, HALF.content_id) for name in ("ann", "bob")
        )
        found = ledger.audit()
        assert (found.good, found.suspended, found.quarantined) == (True, (), ())
        ledger.end()
        assert ledger.verify().good
        assert repr(ledger) == "Ledger('Smoking in the north', budget 1)"


class TestNames:
    """Who is registered, and as what."""

    def test_registering_again_resets_nothing(self, ledger: Ledger) -> None:
        ledger.ask(WHOLE, ["no"], ["sim"])
        assert ledger.register(["sam", "new", "sim"], kind="simulated") == 1
        assert ledger.decide(WHOLE, ["sam", "new", "sim"]).accepted.tolist() == [True, True, False]
        assert ledger.register(["ann"]) == 0

    def test_a_number_and_its_text_are_two_subjects(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            assert ledger.register([1, "1", "01"]) == 3
            ledger.reserve(WHOLE, [1], key="k")
            ScriptedDevice(ledger, 1).send(ledger, WHOLE)
            assert ledger.status().exchanges.tolist() == [1, 0, 0]
            assert ledger.decide(WHOLE).accepted.tolist() == [False, True, True]
            assert reserved(ledger, WHOLE, ["1"], "k") == ["reserved"]
            assert ledger.subjects == (1, "1", "01")

    def test_names_that_look_alike_are_different_people(self, tmp_path: Path) -> None:
        names = ["é", "e\u0301", "É", "\u043e", "o", "İ", "i", "ß", "ss", "a b", "a  b"]
        with a_ledger(tmp_path) as ledger:
            assert ledger.register(names) == len(names)
            assert ledger.subjects == tuple(names)
            assert ledger.verify().good

    def test_the_order_is_that_of_registration(self, tmp_path: Path) -> None:
        names = random.Random(1).sample(range(1000), 300)
        with a_ledger(tmp_path) as ledger:
            for start in range(0, 300, 100):
                ledger.register(names[start : start + 100])
            assert ledger.subjects == tuple(names)
            assert ledger.status().subjects == tuple(names)
            assert len(ledger) == 300

    @pytest.mark.parametrize(
        ("call", "line"),
        [
            (lambda x: x.reserve(HALF, ["sim"]), '"sim" is registered as simulated, not as device'),
            (lambda x: x.reserve(HALF, ["paper"]), "registered as imported, not as device"),
            (lambda x: x.ask(HALF, ["no"], ["ann"]), "registered as device, not as simulated"),
            (lambda x: x.ask(HALF, ["no"], ["paper"]), "as imported, not as simulated"),
            (lambda x: x.record(HALF, ["no"], ["ann"]), "registered as device, not as imported"),
            (lambda x: x.record(HALF, ["no"], ["sim"]), "as simulated, not as imported"),
            (lambda x: x.register(["ann"], kind="simulated"), "registered as device, not as sim"),
            (lambda x: x.register(["new", "paper"]), "registered as imported, not as device"),
            (lambda x: x.register(["new"], kind="phone"), "kind: 'phone' is not one of device, im"),
        ],
    )
    def test_verbs_of_another_kind_refuse_a_subject(
        self, ledger: Ledger, call: Any, line: str
    ) -> None:
        before = ledger.tip
        with pytest.raises(xp.InvalidInput, match=line):
            call(ledger)
        assert ledger.tip == before

    def test_without_names_a_verb_takes_all_of_its_kind(self, ledger: Ledger) -> None:
        assert [each.subject for each in ledger.reserve(QUARTER, key="a")] == ["ann", "bob"]
        assert ledger.ask(QUARTER, ["no", "yes"], key="b").subjects == ("sim", "sam")
        assert ledger.record(QUARTER, ["no"], key="c").tolist() == [True]
        assert ledger.status().kinds == ("device",) * 2 + ("simulated",) * 2 + ("imported",)

    def test_a_message_cannot_answer_for_a_simulated_subject(self, ledger: Ledger) -> None:
        forged = {
            "ledger": ledger.policy.content_id, "subject": "sim", "sequence": 1,
            "previous": ScriptedDevice(ledger, "sim").heads[0], "key": "k", "ticket": "0" * 64,
        }  # fmt: skip
        (receipt,) = ledger.receive([ScriptedDevice(ledger, "sim").message(forged)])
        assert receipt.outcome == "quarantined"


class TestKeys:
    """The same key again returns what became of the request."""

    def test_a_repeated_reservation_is_the_same_and_writes_nothing(self, ledger: Ledger) -> None:
        first = ledger.reserve(HALF, key="k")
        before = ledger.tip
        assert ledger.reserve(HALF, key="k") == first
        assert ledger.tip == before
        assert first == (Outcome("ann", "reserved", 1), Outcome("bob", "reserved", 1))

    def test_a_simulation_is_drawn_once(self, tmp_path: Path) -> None:
        place = tmp_path / "study.db"
        with a_ledger(tmp_path) as ledger:
            ledger.register(range(50), kind="simulated")
            first = ledger.ask(HALF, ["no"] * 50, key="k").responses
        for seed in range(3):
            with Ledger(place, source=InsecureSource(seed)) as ledger:
                assert ledger.ask(HALF, ["no"] * 50, key="k").responses == first
                assert ledger.ask(HALF, ["yes"], [7], key="k").responses == first[7:8]
                assert ledger.status().exchanges.sum() == 50
        assert set(first) == {"no", "yes"}

    def test_one_key_serves_new_subjects_later(self, ledger: Ledger) -> None:
        assert reserved(ledger, HALF, ["ann"], "k") == ["reserved"]
        ledger.register(["new"])
        assert reserved(ledger, HALF, ["ann", "new", "bob"], "k") == ["reserved"] * 3

    @pytest.mark.parametrize("verb", ["reserve", "ask", "record"])
    def test_a_key_is_for_one_query(self, ledger: Ledger, verb: str) -> None:
        given = {
            "reserve": {"subjects": ["ann", "bob"]},
            "ask": {"values": ["no", "no"], "subjects": ["sim", "sam"]},
            "record": {"responses": ["no"], "subjects": ["paper"]},
        }[verb]
        getattr(ledger, verb)(HALF, **given, key="k")
        before, queries = ledger.tip, ledger.queries
        with pytest.raises(xp.InvalidInput, match="key 'k': row 1: was used for another query"):
            getattr(ledger, verb)(QUARTER, **given, key="k")
        assert (ledger.tip, ledger.queries) == (before, queries)

    def test_an_imported_answer_cannot_change(self, ledger: Ledger) -> None:
        ledger.record(HALF, ["no"], ["paper"], key="k")
        with pytest.raises(xp.InvalidInput, match="key 'k': row 1: was used for another response"):
            ledger.record(HALF, ["yes"], ["paper"], key="k")

    def test_a_refused_key_stays_refused_though_the_query_would_fit_later(
        self, tmp_path: Path
    ) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(["ann"])
            ann = ScriptedDevice(ledger)
            ledger.reserve(HALF, key="first")
            ann.send(ledger, response="yes")
            assert reserved(ledger, WHOLE, key="large") == ["refused"]
            ledger.reserve(HALF, key="second")
            ann.send(ledger, response="no")  # which brings the loss down to nothing
            assert ledger.decide(WHOLE).accepted.tolist() == [True]
            assert reserved(ledger, WHOLE, key="large") == ["refused"]
            assert reserved(ledger, WHOLE, key="larger") == ["reserved"]
            assert ledger.verify().good

    def test_keys_that_the_ledger_makes_up_are_new(self, ledger: Ledger) -> None:
        assert reserved(ledger, HALF, ["ann"]) == ["reserved"]
        assert reserved(ledger, HALF, ["ann"]) == ["waiting"]
        assert [each.key for each in ledger.rounds()] == [None]


class TestOutcomes:
    """Every outcome of a reservation."""

    def test_a_subject_that_waits_is_asked_nothing_else(self, ledger: Ledger) -> None:
        ledger.reserve(HALF, ["ann"], key="week 1")
        before = ledger.tip
        (outcome,) = ledger.reserve(QUARTER, ["ann"], key="week 2")
        assert (outcome.outcome, outcome.sequence) == ("waiting", 1)
        assert "'week 1'" in outcome.reason
        assert ledger.tip == before
        assert ledger.status(["ann", "bob"]).reserved.tolist() == [True, False]
        found = ledger.decide(QUARTER, ["ann", "bob"])
        assert found.accepted.tolist() == [False, True]
        assert not found.undecided.any()
        ScriptedDevice(ledger).send(ledger)
        assert reserved(ledger, QUARTER, ["ann"], "week 2") == ["reserved"]

    def test_one_call_has_an_outcome_for_each_subject(self, ledger: Ledger) -> None:
        ledger.register(["waits", "spent", "cheats", "recorded", "declined"])
        ledger.reserve(HALF, ["waits"], key="before")
        phones = {name: ScriptedDevice(ledger, name) for name in ledger.subjects}
        ledger.reserve(WHOLE, ["spent"], key="before")
        phones["spent"].send(ledger, WHOLE)
        ledger.reserve(HALF, ["cheats"], key="before")
        reservation = phones["cheats"].reservation(ledger)
        ledger.receive([phones["cheats"].message(reservation, head="0" * 64)])
        ledger.reserve(HALF, ["recorded", "declined"], key="k")
        phones["recorded"].send(ledger)
        ledger.receive([phones["declined"].declined(phones["declined"].reservation(ledger))])
        names = ["ann", "waits", "spent", "cheats", "recorded", "declined"]
        outcomes = ledger.reserve(HALF, names, key="k")
        assert [each.subject for each in outcomes] == names
        assert [each.outcome for each in outcomes] == [
            "reserved", "waiting", "refused", "suspended", "recorded", "declined",
        ]  # fmt: skip
        assert [each.sequence for each in outcomes] == [1, 1, 0, 0, 1, 1]

    def test_the_response_of_a_recorded_outcome_is_a_number(self, ledger: Ledger) -> None:
        ledger.reserve(HALF, ["ann", "bob"], key="k")
        ScriptedDevice(ledger, "ann").send(ledger, response="yes")
        ScriptedDevice(ledger, "bob").send(ledger, response="no")
        one, other = ledger.reserve(HALF, ["ann", "bob"], key="k")
        assert one.response != other.response
        assert min(one.response, other.response) >= 1


class TestColumns:
    """Another query for each subject."""

    def test_each_subject_gets_its_query_and_some_get_none(self, tmp_path: Path) -> None:
        named = {"half": HALF, "quarter": QUARTER}
        with a_ledger(tmp_path, queries=named) as ledger:
            ledger.register(range(4))
            outcomes = ledger.reserve(["half", None, "quarter", "half"], key="k")
            assert [each.outcome for each in outcomes] == ["reserved", "", "reserved", "reserved"]
            assert ledger.status().reserved.tolist() == [True, False, True, True]
            found = [
                ScriptedDevice(ledger, number).sync(ledger)["reservation"] for number in range(4)
            ]
            assert [each and each["query"]["epsilon"] for each in found] == [
                "0.5", None, "0.25", "0.5",
            ]  # fmt: skip
            assert ledger.decide(["half", None, None, None]).accepted.tolist() == [False] * 4
            rounds = {(each.key, each.query, each.waiting) for each in ledger.rounds()}
            assert rounds == {("k", "half", 2), ("k", "quarter", 1)}

    def test_a_simulated_column_is_answered_in_order(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path, queries={"half": HALF, "other": OTHER}) as ledger:
            ledger.register(range(3), kind="simulated")
            replies = ledger.ask(["other", None, "half"], ["no", "no", "yes"])
            assert replies.queries == ("other", None, "half")
            assert replies.answered.tolist() == [True, False, True]
            assert replies.responses[1] is None

    def test_columns_may_be_arrays(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path, queries={"half": HALF}) as ledger:
            ledger.register(range(3))
            column = np.array(["half", None, "half"], dtype=object)
            assert reserved(ledger, column) == ["reserved", "", "reserved"]

    def test_queries_have_one_name(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path, queries={"half": HALF}) as ledger:
            ledger.name_queries({"quarter": QUARTER, "half": HALF})
            with pytest.raises(xp.InvalidInput, match="is a second name: this query is called"):
                ledger.name_queries({"more": HALF})
            with pytest.raises(xp.InvalidInput, match="is a second name: this query is called"):
                ledger.name_queries({"one": OTHER, "two": OTHER})
            with pytest.raises(xp.InvalidInput, match="half: is the name of another query"):
                ledger.name_queries({"half": OTHER})
            assert ledger.queries == {"half": HALF, "quarter": QUARTER}
        with Ledger(tmp_path / "study.db") as ledger:
            assert ledger.queries == {"half": HALF, "quarter": QUARTER}


class TestParts:
    """A call with more rows than one commit takes."""

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("expost.ledger._arguments._ROWS_PER_COMMIT", 7)

    def test_every_verb_writes_several_commits(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            assert ledger.register(range(30)) == 30
            assert ledger.register(range(100, 130), kind="simulated") == 30
            assert ledger.register(range(200, 230), kind="imported") == 30
            assert ledger.tip.commit_number == 15
            assert reserved(ledger, HALF, key="k") == ["reserved"] * 30
            assert ledger.tip.commit_number == 20
            replies = ledger.ask(WHOLE, ["no"] * 30, key="k")
            assert replies.answered.all()
            assert ledger.tip.commit_number == 30  # a reservation and an answer
            assert ledger.record(HALF, ["yes"] * 30, key="k").all()
            assert ledger.tip.commit_number == 35
            assert ledger.ask(WHOLE, ["no"] * 30, key="k").responses == replies.responses
            assert ledger.verify().good

    def test_progress_counts_rows_that_are_asked_something(self, tmp_path: Path) -> None:
        seen: list[tuple[int, int]] = []
        with a_ledger(tmp_path, queries={"q": OTHER}) as ledger:
            ledger.register(range(20))
            column = [None if number % 2 else "q" for number in range(20)]
            ledger.reserve(column, key="k", progress=lambda *done: seen.append(done))
            assert seen == [(7, 10), (10, 10)]
            ledger.reserve([None] * 20, key="l", progress=lambda *done: seen.append(done))
            ledger.reserve(HALF, [], key="l", progress=lambda *done: seen.append(done))
            assert len(seen) == 2

    def test_an_error_in_a_later_part_says_how_much_is_recorded(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(range(20))
            ledger.reserve(QUARTER, [17], key="k")
            with pytest.raises(xp.InvalidInput) as error:
                ledger.reserve(HALF, key="k")
            assert str(error.value) == (
                "key 'k': row 18: was used for another query; 14 of 20 rows are recorded. Repeat "
                "the call with the key 'k': nothing is recorded twice"
            )
            assert ledger.status().reserved.sum() == 15
            with pytest.raises(xp.InvalidInput, match=r"row 18: was used for another query"):
                ledger.reserve(HALF, key="k")
            assert ledger.status().reserved.sum() == 15

    def test_an_error_in_the_first_part_records_nothing(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger:
            ledger.register(range(20))
            ledger.reserve(QUARTER, [3], key="k")
            before = ledger.tip
            with pytest.raises(xp.InvalidInput, match=r"row 4: was used for another query$"):
                ledger.reserve(HALF, key="k")
            assert ledger.tip == before


class TestImports:
    """Answers that were collected elsewhere."""

    def test_what_is_over_the_budget_is_recorded_and_suspends(self, ledger: Ledger) -> None:
        query = xp.randomized_response(epsilon="3/4")
        names = ["paper"] * 5
        responses = ["yes", "yes", "no", "no", "no"]
        accepted = ledger.record(query, responses, names, key="log")
        # After the second one the subject is suspended, whatever the loss is later.
        assert accepted.tolist() == [True, False, False, False, False]
        assert ledger.record(query, responses, names, key="log").tolist() == accepted.tolist()
        assert [each.response for each in ledger.transcript("paper").exchanges] == responses
        assert ledger.status(["paper"]).states == ("suspended",)
        found = ledger.audit()
        assert (found.suspended, found.good) == (("paper",), False)
        assert found.audit is not None
        assert found.audit.broken == 1

    def test_one_call_is_one_round(self, ledger: Ledger) -> None:
        ledger.record(OTHER, ["yes", "no", "yes"], ["paper"] * 3, key="log")
        assert ledger.rounds() == (Round("log", OTHER.content_id, 3, 0, 0, 0),)

    def test_lost_imports_are_recorded_again(self, tmp_path: Path) -> None:
        from support.scripted_devices import restore

        place = tmp_path / "study.db"
        with a_ledger(tmp_path) as ledger:
            ledger.register(["paper"], kind="imported")
            ledger.backup(tmp_path / "backup.db")
            ledger.record(OTHER, ["yes", "no"], ["paper"] * 2, key="log")
        restore(tmp_path / "backup.db", place)
        assert Ledger.recover(place).lost_imports == 2
        with Ledger(place) as ledger:
            assert (ledger.audit().lost_imports, ledger.audit().good) == (2, False)
            assert ledger.status().states == ("unconfirmed",)
            ledger.record(OTHER, ["yes"], ["paper"], key="log")
            assert ledger.audit().lost_imports == 1
            assert ledger.status().states == ("unconfirmed",)
            ledger.record(OTHER, ["yes", "no"], ["paper"] * 2, key="log")
            assert (ledger.audit().lost_imports, ledger.audit().good) == (0, True)
            assert ledger.status().states == ("active",)
            assert ledger.verify().good


class TestSimulations:
    """`ask` draws for simulated subjects."""

    @pytest.mark.parametrize(
        "guard",
        [
            xp.BayesianFilter(epsilon="0.6"),
            xp.SimplifiedFilter(epsilon="0.8"),
            xp.BasicFilter(epsilon="1"),
        ],
        ids=lambda guard: guard.kind,
    )
    def test_it_answers_as_a_panel_does(self, guard: Any, tmp_path: Path) -> None:
        domain = xp.FiniteSet(range(4))
        names: list[int | str] = ["ann", "bob", 3, "dora", "eve"]
        queries = [
            xp.randomized_response(epsilon="0.1"),
            xp.unary_encoding(variant="symmetric", epsilon="0.2"),
        ]
        values = [3, 1, 2, 0, 0]
        place = tmp_path / "study.db"
        Ledger.create(place, domain, filter=guard).close()
        with Ledger(place, source=InsecureSource(7)) as ledger:
            ledger.register(names, kind="simulated")
            panel = xp.Panel(domain, filter=guard, subjects=names, source=InsecureSource(7))
            for turn in range(16):
                query = queries[turn % 2]
                one, other = panel.decide(query), ledger.decide(query)
                assert (one.accepted == other.accepted).all()
                assert np.allclose(one.loss_at_worst.upper, other.loss_at_worst.upper)
                assert np.allclose(one.remaining, other.remaining, atol=1e-9)
                asked, replied = panel.ask(query, values), ledger.ask(query, values)
                assert asked.responses == replied.responses
            status = ledger.status()
            assert (status.exchanges == panel.exchanges).all()
            assert np.allclose(status.loss.upper, panel.loss.upper, atol=1e-9)
            assert np.allclose(status.spent.upper, panel.spent.upper)
            assert status.remaining.min() < 1e-9
            for name in names:
                assert ledger.transcript(name) == panel.transcript(name)
            refused = (ledger.answers().unanswered or {})["refused"]
            assert refused == (panel.answers().unanswered or {})["refused"] != frozenset()
            assert ledger.verify().good

    def test_records_that_change_and_boxes_are_asked(self, tmp_path: Path) -> None:
        person = xp.Attributes(region=["n", "s"], smokes=xp.changing(["no", "yes"], times=1))
        guard = xp.BayesianFilter(epsilon=1)
        with Ledger.create(tmp_path / "a.db", person, filter=guard) as ledger:
            ledger.register([1, 2], kind="simulated")
            values = [[{"region": "n", "smokes": "no"}, {"region": "n", "smokes": "yes"}]] * 2
            assert ledger.ask(HALF.about("smokes", at=2), values).answered.all()
            assert ledger.verify().good
        search = xp.panel.Search(effort=xp.solver.Effort(nodes=1))
        with Ledger.create(tmp_path / "b.db", BOX, filter=guard, search=search) as ledger:
            ledger.register(["ann"], kind="simulated")
            for _ in range(3):
                ledger.ask(SCORE, [{"age": 30, "weight": 80}])
            assert ledger.verify().good

    def test_it_asks_all_of_a_call_or_no_one(self, ledger: Ledger) -> None:
        """One of them has a reservation that was never answered, as after a crash."""
        ledger._source = _Failing()
        with pytest.raises(RuntimeError):
            ledger.ask(HALF, ["no"], ["sam"], key="crashed")
        ledger._source = InsecureSource(1)
        before = ledger.tip
        with pytest.raises(xp.InvalidInput, match="row 2: its device has to answer"):
            ledger.ask(OTHER, ["no", "no"], ["sim", "sam"], key="next")
        assert ledger.tip == before
        assert ledger.ask(HALF, ["no"], ["sam"], key="crashed").answered.all()


class _Failing:
    def below(self, limit: int) -> int:
        raise RuntimeError("the generator is gone")

    def bytes(self, count: int) -> bytes:
        raise RuntimeError("the generator is gone")


class TestReading:
    """Reading returns numbers to act on, and changes nothing."""

    def test_no_upper_end_is_above_a_budget_that_was_respected(self, tmp_path: Path) -> None:
        query, guard = xp.channel([["3/4", "1/4"], ["1/4", "3/4"]]), xp.BayesianFilter(ratio=3**6)
        with Ledger.create(tmp_path / "study.db", SMOKES, filter=guard) as ledger:
            ledger.register(["a", "b"], kind="imported")
            for key in range(6):
                ledger.record(query, [0, 0], ["a", "b"], key=f"k{key}")
            ledger.record(query, [0], ["b"], key="too much")
            status = ledger.status()
        limit = guard.budget.enclosure.upper
        assert status.states == ("active", "suspended")
        assert status.loss.upper[0] == limit
        assert status.loss.lower[1] > limit

    def test_a_status_shows_itself_and_is_a_table(self, ledger: Ledger) -> None:
        ledger.reserve(HALF, ["ann"], key="k")
        ScriptedDevice(ledger).send(ledger)
        status = ledger.status()
        assert str(status).startswith("Status(5 subjects, 1 answers, 0 suspended)")
        frame = status.to_polars()
        assert frame["subject"].to_list() == ["ann", "bob", "sim", "sam", "paper"]
        assert frame["state"].to_list() == ["active"] * 5
        assert frame["kind"].to_list()[2:] == ["simulated", "simulated", "imported"]
        assert ledger.status(["bob", "ann"]).exchanges.tolist() == [0, 1]
        assert len(ledger.status([])) == 0

    def test_an_open_reservation_counts_when_its_answer_arrives(self, ledger: Ledger) -> None:
        ledger.reserve(HALF, ["ann"], key="k")
        assert ledger.status(["ann"]).remaining[0] == 1
        assert ledger.audit().reserved == ("ann",)
        assert ledger.audit().audit is None
        ScriptedDevice(ledger).send(ledger)
        assert ledger.status(["ann"]).remaining[0] == pytest.approx(0.5)

    def test_every_request_is_in_one_round(self, ledger: Ledger) -> None:
        ledger.register(range(4))
        phones = {number: ScriptedDevice(ledger, number) for number in range(4)}
        ledger.reserve(HALF, range(4), key="k")
        phones[0].send(ledger)
        ledger.receive([phones[1].declined(phones[1].reservation(ledger))])
        ledger.reserve(TOO_MUCH, [0], key="k2")
        ledger.reserve(TOO_MUCH, [1])
        assert ledger.rounds() == (
            Round("k", HALF.content_id, 1, 0, 1, 2),
            Round("k2", TOO_MUCH.content_id, 0, 1, 0, 0),
            Round(None, TOO_MUCH.content_id, 0, 1, 0, 0),
        )
        assert ledger.answers().unanswered == {
            "refused": frozenset([(0, TOO_MUCH.content_id), (1, TOO_MUCH.content_id)]),
            "declined": frozenset([(1, HALF.content_id)]),
            "missing": frozenset(),
        }

    def test_a_decision_is_a_dry_run(self, ledger: Ledger) -> None:
        before = ledger.tip, ledger.queries
        found = ledger.decide(TOO_MUCH)
        assert (ledger.tip, ledger.queries) == before
        assert found.accepted.tolist() == [False] * 5
        assert ledger.decide(WHOLE, ["paper", "ann"]).accepted.tolist() == [True, True]

    def test_a_ledger_is_not_copied(self, ledger: Ledger) -> None:
        with pytest.raises(TypeError, match="a ledger is not copied; open it again"):
            copy.copy(ledger)


class TestEnd:
    """A study that has ended."""

    def test_it_asks_nothing_more_and_records_what_was_drawn(self, ledger: Ledger) -> None:
        ledger.reserve(HALF, ["ann"], key="k")
        ann, bob = ScriptedDevice(ledger, "ann"), ScriptedDevice(ledger, "bob")
        drawn = ann.answer(ledger)
        first = ledger.ask(HALF, ["no", "no"], key="k").responses
        ledger.end()
        before = ledger.tip
        ledger.end()
        for call in (
            lambda: ledger.register(["new"]),
            lambda: ledger.reserve(OTHER, ["bob"], key="l"),
            lambda: ledger.ask(OTHER, ["no", "no"], key="l"),
            lambda: ledger.record(OTHER, ["no"], key="l"),
        ):
            with pytest.raises(xp.InvalidInput, match=r"^the study has ended$"):
                call()
        assert ledger.tip == before
        assert bob.sync(ledger)["state"] == "ended"
        assert ledger.receive([drawn])[0].outcome == "recorded"
        assert ledger.ask(HALF, ["no", "no"], key="k").responses == first
        assert ledger.status().ended
        assert ledger.audit().marks == (f"ended at commit {before.commit_number}",)

    def test_it_has_ended_for_every_process(self, tmp_path: Path) -> None:
        with a_ledger(tmp_path) as ledger, Ledger(tmp_path / "study.db") as reader:
            assert not reader.status().ended
            ledger.end()
            assert reader.status().ended


class TestSaturating:
    """Saturating queries are those of each subject's transcript, and are recorded."""

    DOMAIN = xp.FiniteSet(range(6))
    GUARD = xp.BayesianFilter(epsilon=2)

    def alone(self, ledger: Ledger, subject: Any, question: Any, **options: Any) -> Any:
        """Return what a subject would be asked by itself; None if nothing fits."""
        try:
            return xp.saturating(ledger.transcript(subject), question, **options)
        except xp.InvalidInput as error:
            if "so nothing can be asked" in error.reason:
                return None
            raise

    def check(self, ledger: Ledger, question: Any, caps: list[str], seed: Any = None) -> list[Any]:
        names: list[Any] = ledger.saturating(question, cap=caps, seeds=seed).tolist()
        for subject, name, cap in zip(ledger.subjects, names, caps, strict=True):
            query = self.alone(ledger, subject, question, cap=cap, seed=seed)
            assert (None if name is None else ledger.queries[name]) == query
        return names

    def test_they_are_those_of_each_transcript(self, tmp_path: Path) -> None:
        chance = random.Random(3)
        with Ledger.create(tmp_path / "s.db", self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(20), kind="simulated")
            ledger.ask(xp.randomized_response(epsilon="0.3"), chance.choices(range(6), k=20))
            seen = set[bool]()
            for _ in range(4):
                question = chance.sample(range(6), chance.randint(1, 5))
                caps = [chance.choice(["0.2", "0.9", "1.4", "2"]) for _ in range(20)]
                names = self.check(ledger, question, caps)
                self.check(ledger, "value", caps, seed="0a")
                seen.update(name is None for name in names)
                accepted = ledger.decide(names).accepted.tolist()
                assert accepted == [name is not None for name in names]
                replies = ledger.ask(names, chance.choices(range(6), k=20))
                assert replies.answered.tolist() == accepted
                assert list(replies.queries) == names
            assert seen == {True, False}
            assert ledger.verify().good

    def test_every_response_ends_at_the_cap_and_states_share_their_queries(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = []

        def counted(*state: Any) -> Any:
            made.append(state)
            return saturating_query(*state)

        monkeypatch.setattr("expost.panel._saturating.saturating_query", counted)
        place = tmp_path / "study.db"
        with Ledger.create(place, self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(500), kind="simulated")
            values = [number % 6 for number in range(500)]
            questions = "value >= 4", "value < 2", [0, 2, 4]
            for question, cap in zip(questions, equal_caps("2", questions=3), strict=True):
                names = ledger.saturating(question, cap=cap)
                assert ledger.ask(names, values).answered.all()
                loss = ledger.status().loss
                assert (loss.upper <= float(cap) * (1 + 1e-12)).all()
                assert (loss.lower >= float(cap) - 2.0**-19).all()
            assert len(made) <= 7
            assert len(ledger.queries) <= 7
            assert ledger.saturating("value < 5", cap="2").tolist() == [None] * 500
        with Ledger(place) as again:  # names are recorded, for every other process
            assert set(names) <= set(again.queries)
            assert again.verify().good

    def test_devices_are_sent_their_own_queries(self, tmp_path: Path) -> None:
        person = xp.Attributes(region=["n", "e", "s"], smokes=["no", "yes"])
        with Ledger.create(tmp_path / "s.db", person, filter=self.GUARD) as ledger:
            ledger.register(["ann", "bob", "eve"])
            names = ledger.saturating('region == "n"', cap=["2", "1", "2"])
            assert names[0] == names[2] != names[1]
            assert reserved(ledger, names, key="k") == ["reserved"] * 3
            found = [
                ScriptedDevice(ledger, name).sync(ledger)["reservation"] for name in ledger.subjects
            ]
            sent = [each["query"] for each in found]
            assert sent[0] == sent[2] != sent[1]

    def test_a_round_that_stopped_is_repeated_with_its_key(self, tmp_path: Path) -> None:
        values, round_ = [number % 6 for number in range(30)], ("value >= 4", "1")
        with Ledger.create(tmp_path / "s.db", self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(30), kind="simulated")
            # The first ten have answered, and lost something more since, when the round goes on.
            names = ledger.saturating(round_[0], cap=round_[1], subjects=range(10), key="k")
            first = ledger.ask(names, values[:10], range(10), key="k")
            ledger.ask(xp.randomized_response(epsilon="0.4"), values[:10], range(10))
            queries = len(ledger.queries)
        with Ledger(tmp_path / "s.db") as ledger:
            again = ledger.saturating(round_[0], cap=round_[1], key="k")
            assert again[:10].tolist() == names.tolist()
            assert len(ledger.queries) == queries
            replies = ledger.ask(again, values, key="k")
            assert replies.responses[:10] == first.responses
            tip = ledger.tip
            repeated = ledger.saturating(round_[0], cap=round_[1], key="k")
            assert repeated.tolist() == again.tolist()
            assert ledger.ask(repeated, values, key="k").responses == replies.responses
            assert ledger.tip == tip
            assert ledger.status().exchanges.tolist() == [2] * 10 + [1] * 20
            assert ledger.verify().good

    def test_queries_have_their_question_as_a_label(self, tmp_path: Path) -> None:
        with Ledger.create(tmp_path / "s.db", self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(40), kind="simulated")
            values = [number % 6 for number in range(40)]
            for question, cap in (("value >= 4", "1"), ([0, 2, 4], "2")):
                ledger.ask(ledger.saturating(question, cap=cap), values, key=str(cap))
            answers, transcript = ledger.answers(), ledger.transcript(0)
            rounds, page = ledger.rounds(), summary_of(ledger)
        labels = {(query.question, str(query.cap)) for query in answers.queries.values()}
        assert labels == {("value >= 4", "1"), ("one of 0, 2 or 4", "2")}
        # The page has a row for each question, with all answers to it.
        assert len(rounds) > 2
        assert [(row.key, row.query, row.answered) for row in page.rounds] == [
            ("1", "value >= 4", 40),
            ("2", "one of 0, 2 or 4", 40),
        ]
        assert page.query_texts["one of 0, 2 or 4"].endswith("to a loss of 2 at most")
        # Files keep labels, which no content id depends on.
        read = xp.Transcript.from_json(transcript.to_json())
        assert [exchange.query.question for exchange in read.exchanges] == [
            "value >= 4", "one of 0, 2 or 4",
        ]  # fmt: skip
        tree = json.loads(transcript.to_json())
        for exchange in tree["exchanges"]:
            del exchange["query"]["question"], exchange["query"]["cap"]
        bare = xp.Transcript.from_json(json.dumps(tree))
        assert bare.exchanges[1].query.question is None
        assert bare.content_id == read.content_id == transcript.content_id
        assert [e.query for e in bare.exchanges] == [e.query for e in read.exchanges]
        _, queries = queries_from_json(queries_to_json(self.DOMAIN, answers.queries))
        assert {(q.question, str(q.cap)) for q in queries.values()} == labels

    def test_what_cannot_be_is_one_line(self, tmp_path: Path) -> None:
        with Ledger.create(tmp_path / "s.db", self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(3), kind="imported")
            before = ledger.tip
            for options, line in (
                ({"cap": 3}, "cap"),
                ({"cap": [1, 2]}, "cap: got 2 for 3 subjects"),
                ({"cap": 1, "subjects": [0, 7]}, "no subject 7 in this ledger"),
            ):
                with pytest.raises(xp.InvalidInput, match=line):
                    ledger.saturating("value < 2", **options)
            assert ledger.tip == before
            names = ledger.saturating("value < 2", cap=1, subjects=[0, 1])
            with pytest.raises(xp.InvalidInput, match="query: row 2: has a response but no query"):
                ledger.record([names[0], None], [1, 1], [1, 2])

    def test_only_so_many_states_are_remembered(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("expost.ledger._tallies._MAX_TALLIES", 1)
        with Ledger.create(tmp_path / "s.db", self.DOMAIN, filter=self.GUARD) as ledger:
            ledger.register(range(30), kind="simulated")
            for turn in range(3):
                ledger.ask(xp.randomized_response(epsilon="0.2"), np.arange(30) % 6)
                self.check(ledger, [1, 2], [str(1 + turn / 4)] * 30)
