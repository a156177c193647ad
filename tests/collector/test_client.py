"""The client for analysts, registrars, auditors and administrators, against a real collector."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import expost as xp
from expost.collector import CollectorOffline, CollectorRefusal
from expost.device import checks, device
from support.collectors import Collector
from support.scripted_collector import Request, scripted
from support.scripted_devices import HALF, SMOKES

NAMES: list[str | int] = [*(f"größe/{number} ?" for number in range(40)), 7]


class Clients:
    """A collector, a client with each scope, and a device of each subject."""

    def __init__(self, folder: Path) -> None:
        self.place, self.checkpoint = folder / "study.db", folder / "checkpoint"
        guard = xp.BayesianFilter(epsilon=1)
        with xp.Ledger.create(
            self.place, SMOKES, filter=guard, study="Smoking", queries={"half": HALF},
            checkpoint=self.checkpoint,
        ) as ledger:  # fmt: skip
            self.policy = ledger.policy
        self.server = Collector(str(self.place), self.checkpoint)
        self.url = f"http://127.0.0.1:{self.server.port}"
        self.administrator = xp.Collector(self.url, self.server.administrator)
        self.analyst, self.registrar, self.auditor, self.by_name = (
            xp.Collector(self.url, self.administrator.make_token(*scopes, label="test"))
            for scopes in (["analyst"], ["registrar"], ["auditor"], ["analyst", "asks-by-name"])
        )
        self.codes = self.registrar.invite(NAMES)
        self.stores = {name: str(folder / f"store {k}") for k, name in enumerate(NAMES)}
        with device.Collector(self.url) as collector:
            for name, store in self.stores.items():
                device.Device.create(store, self.policy.to_json(), name, '"yes"')
                own = device.Device(store)
                device.enroll(own, collector, self.codes[name])
                own.close()

    def sync(self) -> None:
        with device.Collector(self.url) as collector:
            for store in self.stores.values():
                own = device.Device(store)
                device.sync_with(own, collector)
                own.close()

    def close(self) -> None:
        for client in (self.administrator, self.analyst, self.registrar, self.auditor):
            client.close()
        self.by_name.close()
        self.server.close()


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    made = Clients(tmp_path_factory.mktemp("clients"))
    yield made
    made.close()


def test_a_study_from_the_policy_to_the_export(clients: Clients, tmp_path: Path) -> None:
    with xp.Collector(clients.url) as anybody:
        assert anybody.policy() == clients.policy
    assert clients.registrar.register(NAMES[:3]) == 0
    assert clients.registrar.name_group("words & numbers", NAMES[20:]) == 21
    assert clients.analyst.groups() == {"words & numbers": 21}

    tried = clients.analyst.round(HALF, group="words & numbers", dry_run=True)
    assert (tried.subjects, tried.accepted, tried.refused) == (21, 21, 0)
    asked = clients.analyst.round("half", "week 1")
    assert (asked.key, asked.query, asked.subjects) == ("week 1", "half", 41)
    assert (asked.waiting, asked.later) == (41, 0)
    clients.sync()
    for key in ("week 2", "week 3"):
        clients.analyst.round(HALF, key)
        clients.sync()
    assert clients.by_name.round(HALF, "7 alone", subjects=[7]).subjects == 1
    rounds = {done.key: done for done in clients.analyst.rounds()}
    assert list(rounds) == ["week 1", "week 2", "week 3"]
    assert rounds["week 1"].answered == 41
    assert rounds["week 3"].answered + rounds["week 3"].refused == 41

    status = clients.analyst.status()
    assert status.answers == sum(done.answered for done in rounds.values())
    assert sum(status.used) == clients.analyst.status("words & numbers").subjects + 20 == 41

    estimates = clients.analyst.estimate(confidence="0.999")
    assert [row.of for row in estimates.rows] == ["no", "yes"]
    assert all(row.lower <= row.estimate <= row.upper for row in estimates.rows)
    assert "distribution" in str(estimates)
    (share,) = clients.analyst.estimate(share='value == "yes"', group="words & numbers").rows
    assert share.upper > 0.5
    verdict = clients.auditor.audit()
    assert verdict.good
    assert (verdict.subjects, verdict.exchanges) == (41, status.answers)

    for name in (7, NAMES[0]):
        own = device.Device(clients.stores[name])
        transcript = clients.auditor.transcript(name)
        responses = [json.loads(message)["response"] for message in own._sent]
        assert [exchange.response for exchange in transcript.exchanges] == responses
        own.close()
    clients.auditor.export(tmp_path / "export.jsonl")
    assert checks.check_export(str(tmp_path / "export.jsonl")).faults == []
    clients.auditor.requests(tmp_path / "requests.jsonl")
    assert "7 alone" in (tmp_path / "requests.jsonl").read_text("utf-8")

    assert clients.registrar.withdraw(NAMES[5])
    assert not clients.registrar.withdraw(NAMES[5])
    assert clients.registrar.revoke_device(NAMES[5])
    assert not clients.registrar.resolve(NAMES[6])
    token = clients.administrator.make_token("auditor")
    name = token.partition(".")[0]
    assert [clients.administrator.revoke_token(name) for _ in range(2)] == [True, False]
    with (
        xp.Collector(clients.url, token) as revoked,
        pytest.raises(CollectorRefusal, match="expected a valid token"),
    ):
        revoked.audit()


def test_a_refusal_is_one_line_with_its_numbers(clients: Clients, tmp_path: Path) -> None:
    with pytest.raises(CollectorRefusal) as refusal:
        clients.registrar.name_group("too small", NAMES[:3])
    assert (refusal.value.status, refusal.value.kind) == (422, "group-too-small")
    assert refusal.value.members
    with pytest.raises(CollectorRefusal) as refusal:
        clients.analyst.export(tmp_path / "export")
    assert (refusal.value.kind, refusal.value.members) == ("scope-missing", {"scopes": ["auditor"]})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(CollectorRefusal, match="name of no query") as refusal:
        clients.analyst.round("nothing", "key")
    assert "\n" not in str(refusal.value)
    with pytest.raises(CollectorRefusal, match="key"):
        clients.analyst.round("half")  # type: ignore[call-overload]


def test_progress_is_reported_until_a_job_is_done() -> None:
    verdict = {"good": True, "problems": [], "commit": 9, "root": "00", "extras": 0}
    verdict |= dict.fromkeys(("subjects", "exchanges", "lost_imports"), 0)
    lists = ("broken", "suspended", "unconfirmed", "withdrawn", "reserved", "quarantined")
    verdict |= {name: [] for name in (*lists, "two_outcomes", "marks")}
    answers = iter([(202, {"done": 1, "total": 3}), (202, {"done": 2, "total": 3}), (200, verdict)])
    seen: list[tuple[int, int]] = []
    with (
        scripted(lambda request: next(answers)) as collector,
        xp.Collector(collector.url, "token") as auditor,
    ):
        assert auditor.audit(progress=lambda *steps: seen.append(steps)).commit == 9
    assert seen == [(1, 3), (2, 3)]


def test_a_collector_that_is_gone_is_an_error_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "FIRST_PAUSE", 0.0)

    def busy(request: Request) -> tuple[int, str]:
        return 503, "{}"

    with (
        scripted(busy) as collector,
        xp.Collector(collector.url, "secret") as analyst,
        pytest.raises(CollectorOffline, match=r"\(status 503\)") as error,
    ):
        analyst.status()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("url", ["http://collector.example", "collector.example", "https://a:b"])
def test_a_bad_url_is_refused(url: str) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^url: "):
        xp.Collector(url, "token")


@pytest.mark.parametrize("token", ["a\nb", "größe"])
def test_a_bad_token_is_refused(token: str) -> None:
    with pytest.raises(xp.InvalidInput, match=r"^token: ") as error:
        xp.Collector("https://collector.example", token)
    assert token not in str(error.value)


def test_the_client_needs_no_server_packages() -> None:
    program = (
        "import sys; import expost as xp; xp.Collector; "
        "sys.exit(bool({'starlette', 'uvicorn', 'msgspec', 'numpy'} & sys.modules.keys()))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
