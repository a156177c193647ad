"""A device talks to a collector over HTTP, whatever that answers and the network does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from expost.device import device
from expost.device.device import Collector, Device, Offline, Refused, enroll, sync_with
from support.scripted_collector import CERTIFICATE, Request, scripted
from support.single_device import a_device, answer, reservation

CODE = f"{'c' * 16}.{'1' * 64}"
TOKEN = f"{'a' * 16}.{'2' * 64}"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "FIRST_PAUSE", 0.0)


def enrolled(tmp_path: Path) -> Device:
    ann = a_device(tmp_path)
    ann.store_token(TOKEN)
    return ann


def enroll_at(ann: Device, url: str, code: str = CODE) -> None:
    with Collector(url) as collector:
        enroll(ann, collector, code)


def sync_at(ann: Device, url: str) -> None:
    with Collector(url) as collector:
        sync_with(ann, collector)


def welcome(ann: Device, **other: Any) -> Callable[[Request], tuple[int, Any]]:
    fields = {"subject": "ann", "token": TOKEN, "ledger": ann.policy.id, **other}
    return lambda request: (200, fields)


def run(tmp_path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    quick = "import runpy, sys; sys.argv = sys.argv[1:]; d = runpy.run_path(sys.argv[0]); "
    quick += "d['main'].__globals__['FIRST_PAUSE'] = 0; sys.exit(d['main'](*sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-I", "-c", quick, device.__file__, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip


def test_enrolment_stores_one_id_and_the_token(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    lost = iter([True, False])

    def reply(request: Request) -> tuple[int, Any] | None:
        return None if next(lost) else welcome(ann)(request)

    with scripted(reply) as collector:
        enroll_at(ann, collector.url)
    first, second = (request.tree for request in collector.requests)
    assert first == second == {"code": CODE, "device": ann.id}
    assert len(bytes.fromhex(ann.id)) == 32
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert (again.id, again.token) == (ann.id, TOKEN)
    size = (tmp_path / "store").stat().st_size
    with scripted(welcome(again)) as collector:
        enroll_at(again, collector.url)
    assert collector.requests[0].tree["device"] == ann.id
    assert (tmp_path / "store").stat().st_size == size


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"subject": "bob"}, "for another subject"),
        ({"ledger": "0" * 64}, "for another study"),
        ({"token": "all"}, "without a token"),
        ({"token": None}, "must be a string"),
        ({"extra": 1}, "not known here"),
    ],
)
def test_a_wrong_answer_to_an_enrolment_is_refused(
    tmp_path: Path, fields: dict[str, Any], reason: str
) -> None:
    ann = a_device(tmp_path)
    with (
        scripted(welcome(ann, **fields)) as collector,
        pytest.raises(Refused, match=reason),
    ):
        enroll_at(ann, collector.url)
    assert ann.token == ""


def test_a_wrong_code_is_not_sent(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    with (
        scripted(welcome(ann)) as collector,
        pytest.raises(Refused, match="incomplete or wrong") as refusal,
    ):
        enroll_at(ann, collector.url, CODE[:-1])
    assert not collector.requests
    assert CODE[:-1] not in str(refusal.value)


def test_a_sync_continues_through_busy_answers_and_cut_connections(tmp_path: Path) -> None:
    ann, faults = enrolled(tmp_path), iter([503, None, 429, None, 502])

    def reply(request: Request) -> tuple[int, Any] | None:
        fault = next(faults, 200)
        if fault != 200:
            return None if fault is None else (fault, "busy")
        if len(ann.heads) == 1:
            return 200, answer(ann, request.content.decode(), reservation=reservation(ann))
        return 200, answer(ann, request.content.decode())

    with scripted(reply) as collector:
        sync_at(ann, f"{collector.url}/study/")
    assert {request.path for request in collector.requests} == {"/study/v1/sync"}
    assert {request.token for request in collector.requests} == {f"Bearer {TOKEN}"}
    contents = [request.content for request in collector.requests]
    assert len(contents) == 7
    assert len(set(contents)) == 2  # an attempt repeats the same bytes
    assert len(ann.heads) == 2


def test_a_stale_answer_is_ignored(tmp_path: Path) -> None:
    ann, previous = enrolled(tmp_path), list[str]()

    def reply(request: Request) -> tuple[int, Any]:
        text = request.content.decode()
        if len(ann.heads) == 1:
            previous.append(answer(ann, text, reservation=reservation(ann)))
            return 200, previous[0]
        previous.append(previous[0] if len(previous) == 1 else answer(ann, text))
        return 200, previous[-1]

    with scripted(reply) as collector:
        sync_at(ann, collector.url)
    assert len(ann.heads) == 2

    with (
        scripted(lambda request: (200, previous[0])) as collector,
        pytest.raises(Refused, match="stale"),
    ):
        sync_at(ann, collector.url)
    assert len(collector.requests) == device.ATTEMPTS
    assert len(ann.heads) == 2


@pytest.mark.parametrize("content", ["", "no", "[]", "{}", '{"detail": 7}', '{"detail": "a\\nb"}'])
def test_a_refused_request_is_not_repeated(tmp_path: Path, content: str) -> None:
    ann = enrolled(tmp_path)
    with (
        scripted(lambda request: (403, content)) as collector,
        pytest.raises(Refused, match="answered 403: ") as refusal,
    ):
        sync_at(ann, collector.url)
    assert len(collector.requests) == 1
    assert "\n" not in str(refusal.value)
    assert TOKEN[17:] not in str(refusal.value)


def test_a_redirection_is_not_followed(tmp_path: Path) -> None:
    with (
        scripted(lambda request: (307, "")) as collector,
        pytest.raises(Refused, match="answered 307"),
    ):
        sync_at(enrolled(tmp_path), collector.url)
    assert len(collector.requests) == 1


def test_an_endless_answer_is_refused(tmp_path: Path) -> None:
    def reply(request: Request) -> tuple[int, Any]:
        return 200, " " * (device.LARGEST_ANSWER + 10)

    with (
        scripted(reply) as collector,
        pytest.raises(Refused, match="an answer has at most"),
    ):
        sync_at(enrolled(tmp_path), collector.url)


def test_pauses_grow_and_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "FIRST_PAUSE", 1.0)
    pauses: list[float] = []
    monkeypatch.setattr(device, "wait", pauses.append)
    collector = Collector("http://127.0.0.1:1")
    with pytest.raises(Offline, match=r"127\.0\.0\.1:1 cannot be reached"):
        collector.request("POST", "/")
    assert len(pauses) == device.ATTEMPTS - 1
    assert all(2**n / 2 <= pause < 2**n for n, pause in enumerate(pauses))
    repeated = list(pauses)
    with pytest.raises(Offline):
        collector.request("POST", "/")
    assert pauses[len(repeated) :] != repeated
    collector._pause(1, 20.0)  # as Retry-After says
    collector._pause(1, 1e9)
    assert pauses[-2:] == [20.0, device.LONGEST_PAUSE]


@pytest.mark.parametrize(
    "url",
    [
        "http://collector.example", "ftp://127.0.0.1", "https://", "https://ann:word@c.example", "",
        "https://a:b", "https://a:70000", "https://[::1", "https://a.example/\n", "https://ä.example",
        "https://a.example/?b=c", "http://localhost.example",
    ],
)  # fmt: skip
def test_a_url_that_cannot_be_used_or_shows_the_token_is_refused(url: str) -> None:
    with pytest.raises(Refused, match=r"^the URL must be"):
        Collector(url)


def test_a_host_that_is_no_name_is_offline() -> None:
    with Collector(f"https://{'a' * 70}.example") as collector, pytest.raises(Offline):
        collector.request("GET", "/v1/policy")


def test_the_commands_enroll_and_sync(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    ann.close()
    done = run(tmp_path, "sync", "store", "http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "device: the device has no token; use enroll with an invitation code\n"
    (tmp_path / "code").write_text(CODE + "\n", "ascii")
    with scripted(welcome(ann)) as collector:
        readable = run(tmp_path, "enroll", "store", collector.url, "--code", "code")
        assert readable.returncode == 1
        assert "give it mode 600" in readable.stderr
        (tmp_path / "code").chmod(0o600)
        done = run(tmp_path, "enroll", "store", collector.url, "--code", "code")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["subject"] == "ann"
    assert TOKEN[17:] not in done.stdout
    with scripted(lambda request: (200, answer(ann, request.content.decode()))) as collector:
        assert run(tmp_path, "sync", "store", collector.url).returncode == 0
    with scripted(lambda request: (200, {"changed": True})) as collector:
        assert run(tmp_path, "withdraw", "store", collector.url).returncode == 0
    (request,) = collector.requests
    assert (request.path, request.tree) == ("/v1/withdrawals", {"subject": "ann"})
    assert request.token == f"Bearer {TOKEN}"


def test_a_device_that_is_offline_exits_with_3(tmp_path: Path) -> None:
    enrolled(tmp_path).close()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = run(tmp_path, "sync", "store", f"http://127.0.0.1:{port}")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(
        f"device: 127.0.0.1:{port} cannot be reached (Connection refused)"
    )
    assert done.stderr.count("\n") == 1


def test_a_certificate_is_checked(tmp_path: Path) -> None:
    ann = enrolled(tmp_path)
    ann.close()

    with scripted(lambda request: (200, answer(ann, request.content.decode())), tls=True) as tls:
        done = run(tmp_path, "sync", "store", tls.url)
        assert (done.returncode, tls.requests) == (1, [])
        assert done.stderr.endswith("is not valid\n")
        trusted = {"SSL_CERT_FILE": str(CERTIFICATE)}
        other_name = tls.url.replace("localhost", "127.0.0.1")
        assert run(tmp_path, "sync", "store", other_name, **trusted).returncode == 1
        assert not tls.requests
        assert run(tmp_path, "sync", "store", tls.url, **trusted).returncode == 0
    assert len(tls.requests) == 1
