"""A subject withdraws: it is asked nothing more, and estimates leave it out."""

from __future__ import annotations

from pathlib import Path

import pytest

import expost as xp
from expost.ledger import Ledger
from support.scripted_devices import HALF, OTHER, ScriptedDevice, a_ledger, reserved, restore


def test_a_withdrawn_subject_is_asked_nothing_and_left_out_of_estimates(tmp_path: Path) -> None:
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann", "bob"])
        ann, bob = ScriptedDevice(ledger, "ann"), ScriptedDevice(ledger, "bob")
        ledger.reserve(HALF, key="first")
        ann.send(ledger)
        bob.send(ledger)
        ledger.reserve(OTHER, key="second")
        late = bob.answer(ledger, OTHER)

        assert ledger.withdraw(["bob"]) == ("bob",)
        assert ledger.withdraw(["bob"]) == ()
        assert ledger.withdrawn == {"bob"}
        assert reserved(ledger, OTHER, key="third") == ["waiting", "suspended"]
        assert bob.sync(ledger)["reservation"] is None
        assert ledger.answers().subjects == ("ann",)
        with pytest.raises(xp.InvalidInput, match="has withdrawn from the study"):
            ledger.resolve(["bob"])
        # What was drawn before may have been sent: it counts.
        (receipt,) = ledger.receive([late])
        assert receipt.outcome == "recorded"
        assert len(ledger.transcript("bob")) == 2
        assert ledger.verify().good
        assert ledger.audit().good


def test_a_withdrawal_survives_a_restored_backup(tmp_path: Path) -> None:
    place, backup = tmp_path / "study.db", tmp_path / "backup.db"
    with a_ledger(tmp_path) as ledger:
        ledger.register(["ann", "bob"])
        ledger.backup(backup)
        ledger.register(["cyd"])
        cyd = ScriptedDevice(ledger, "cyd")
        ledger.withdraw(["bob", "cyd"])
    for _ in range(2):
        restore(backup, place)
        Ledger.recover(place)
    with Ledger(place) as ledger:
        assert ledger.withdrawn == {"bob"}
        cyd.sync(ledger)
        assert ledger.withdrawn == {"bob", "cyd"}
        assert ledger.status().states == ("unconfirmed", "suspended", "suspended")
        assert ledger.verify().good
