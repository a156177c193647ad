"""A collector whose database is put back or replaced, and devices that wait for a round."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from expost.ledger import Ledger
from support.collectors import Reply, StudySite
from support.scripted_devices import restore

NAMES = [f"subject {number}" for number in range(23)]


@pytest.fixture
def new_site() -> Iterator[Callable[..., StudySite]]:
    made = []

    def make(*arguments: Any, **options: Any) -> StudySite:
        made.append(StudySite(*arguments, **options))
        return made[-1]

    yield make
    for site in made:
        site.close()


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


def test_a_collector_whose_database_is_replaced_stops_and_starts_again(
    tmp_path: Path, new_site: Callable[..., StudySite]
) -> None:
    place = tmp_path / "study.db"
    site = new_site(str(place), tmp_path, NAMES[:20])
    site.ask("half", "first")
    copy = tmp_path / "copy.db"
    with Ledger(place, checkpoint=site.checkpoint) as ledger:
        ledger.backup(copy)
    copy.replace(place)
    request, token = site.fleet.devices[NAMES[0]].sync(), site.fleet.tokens[NAMES[0]]
    reply = site.collector.call("POST", "/v1/sync", token, request.encode())
    body = site.fleet.devices[NAMES[0]].take(reply.content)
    reply = site.collector.call("POST", "/v1/sync", token, body.encode())
    assert (reply.status, reply.tree["type"]) == (503, "urn:expost:problem:unavailable")
    assert site.collector.wait() == 1
    for suffix in ("-wal", "-shm"):
        Path(f"{place}{suffix}").unlink(missing_ok=True)
    site.collector.start()
    site.fleet.sync()
    assert site.collector.stop() == 0
    assert site.recorded() == site.fleet.heads()
