"""A study over HTTP alone, on SQLite and PostgreSQL: kills, offline spells, a restored backup."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from expost.device import checks
from expost.ledger import Ledger
from support.collectors import Fleet, Reply, StudySite
from support.scripted_devices import restore

NAMES = [f"subject {number}" for number in range(27)]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "study.db")
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def new_site() -> Iterator[Callable[..., StudySite]]:
    made = []

    def make(*arguments: Any, **options: Any) -> StudySite:
        made.append(StudySite(*arguments, **options))
        return made[-1]

    yield make
    for site in made:
        site.close()


def sync_in_turn(fleet: Fleet, names: list[str]) -> None:
    """Sync devices while the collector is killed."""
    for name in names:
        with suppress(Exception):  # the kill cuts off a request
            fleet.sync([name], threads=1)


def test_a_study_survives_kills_while_devices_sync(
    place: str, tmp_path: Path, new_site: Callable[..., StudySite]
) -> None:
    site = new_site(place, tmp_path, NAMES)
    collector, fleet = site.collector, site.fleet
    for number in range(2):
        counts = site.ask("half", f"round {number}")
        assert (counts["subjects"], counts["waiting"]) == (len(NAMES), len(NAMES))
        online = [name for name in NAMES if name not in NAMES[number::5]]
        thread = threading.Thread(target=sync_in_turn, args=(fleet, online))
        thread.start()
        time.sleep(0.1)
        assert collector.stop(signal.SIGKILL) == -signal.SIGKILL
        thread.join()
        collector.start()
        assert site.ask("half", f"round {number}")["subjects"] == len(NAMES)
        fleet.sync()
        fleet.sync(NAMES[:5])  # a second sync changes nothing
    found = collector.succeed("GET", "/v1/rounds", site.analyst)["rounds"]
    assert [(done["key"], done["answered"]) for done in found] == [
        ("round 0", len(NAMES)), ("round 1", len(NAMES)),
    ]  # fmt: skip
    assert collector.succeed("GET", "/v1/audit?wait=30", site.auditor)["good"] is True
    shares = collector.succeed("GET", "/v1/estimates?wait=30&frequencies=true", site.analyst)
    (yes,) = (row for row in shares["estimates"] if row["of"] == "yes")
    assert yes["lower"] <= 2 / 3 <= yes["upper"]
    export = tmp_path / "export.jsonl"
    export.write_bytes(collector.call("GET", "/v1/export", site.auditor).content)
    assert collector.stop() == 0
    assert site.recorded() == fleet.heads()
    assert {len(device.heads) for device in fleet.devices.values()} == {3}
    checked = subprocess.run(
        [sys.executable, "-I", str(checks.__file__), "export", str(export)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "27 subjects, 54 exchanges: chains, tallies and decisions are right" in checked.stdout


def test_a_restored_backup_changes_no_binding_and_loses_nothing(
    tmp_path: Path, new_site: Callable[..., StudySite]
) -> None:
    place, backup = tmp_path / "study.db", tmp_path / "backup.db"
    site = new_site(str(place), tmp_path, NAMES[:21])
    collector, fleet = site.collector, site.fleet
    site.ask("half", "first")
    fleet.sync()
    with Ledger(place, checkpoint=site.checkpoint) as ledger:
        ledger.backup(backup)
    late = site.invite(NAMES[21:23])
    fleet.enroll(late)
    site.ask("quarter", "second")
    fleet.sync()
    gone = NAMES[4]
    withdrawal = {"subject": gone}
    collector.succeed("POST", "/v1/withdrawals", fleet.tokens[gone], withdrawal)
    revoked = collector.token("analyst")
    path = f"/v1/tokens/{revoked.partition('.')[0]}"
    collector.succeed("DELETE", path, collector.administrator)
    assert collector.stop() == 0
    restore(backup, place)
    Ledger.recover(place, checkpoint=site.checkpoint)
    collector.start()

    # The codes are used, the token is revoked, and every device speaks for its subject as before.
    stolen = {"code": late[0]["code"], "device": "0" * 64}
    reply = collector.call("POST", "/v1/enroll", body=stolen)
    assert (reply.status, reply.tree["type"]) == (409, "urn:expost:problem:another-device")
    assert collector.call("GET", "/v1/status", revoked).status == 401
    before = fleet.heads()
    fleet.sync()
    assert fleet.heads() == before
    assert site.ask("quarter", "third")["subjects"] == 22  # without the withdrawn one
    fleet.sync()
    assert collector.stop() == 0
    assert site.recorded() == fleet.heads()
    with Ledger(place, checkpoint=site.checkpoint) as ledger:
        assert ledger.withdrawn == {gone}
        assert ledger.audit().good
        assert ledger.verify().good


def test_a_waiting_device_is_answered_by_a_round_and_by_a_stop(
    tmp_path: Path, new_site: Callable[..., StudySite]
) -> None:
    site = new_site(str(tmp_path / "study.db"), tmp_path, NAMES[:20])
    replies: list[Reply] = []

    def wait() -> threading.Thread:
        request, token = site.fleet.devices[NAMES[0]].sync(), site.fleet.tokens[NAMES[0]]

        def send() -> None:
            call = site.collector.call
            replies.append(call("POST", "/v1/sync?wait=25", token, request.encode()))

        thread = threading.Thread(target=send)
        thread.start()
        time.sleep(0.3)
        return thread

    start = time.monotonic()
    thread = wait()
    site.ask("half", "first")
    thread.join()
    assert replies[0].tree["reservation"]["key"] == "first"
    site.fleet.sync([NAMES[0]])
    thread = wait()
    assert site.collector.stop() == 0
    thread.join()
    assert time.monotonic() - start < 20
    assert replies[1].status == 503 or replies[1].tree["reservation"] is None
