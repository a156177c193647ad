"""A study of 40 subjects on a collector, for the tests that change nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import expost as xp
from support.collectors import Collector, Fleet
from support.scripted_devices import HALF, SMOKES

NAMES = [f"subject {number}" for number in range(40)]


class Study:
    """A collector with tokens, a group, and three devices."""

    def __init__(self, folder: Path) -> None:
        self.place, self.checkpoint = str(folder / "study.db"), folder / "checkpoint"
        guard = xp.BayesianFilter(epsilon=2)
        xp.Ledger.create(
            self.place, SMOKES, filter=guard, queries={"half": HALF}, checkpoint=self.checkpoint
        ).close()
        self.collector = Collector(self.place, self.checkpoint)
        scopes = ("gateway", "analyst", "asks-by-name", "registrar", "auditor")
        self.tokens = {scope: self.collector.token(scope) for scope in scopes}
        self.tokens["administrator"] = self.collector.administrator
        self.invitations = self.collector.succeed(
            "POST", "/v1/invitations", self.tokens["registrar"], {"subjects": NAMES}
        )["invitations"]
        registrar = self.tokens["registrar"]
        self.collector.succeed("PUT", "/v1/groups/odd", registrar, {"subjects": NAMES[1::2]})
        self.fleet = Fleet(self.collector, folder)
        self.fleet.enroll(self.invitations[:3])
        self.tokens["device"] = self.fleet.tokens[NAMES[0]]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    made = Study(tmp_path_factory.mktemp("study"))
    yield made
    made.fleet.close()
    made.collector.close()
