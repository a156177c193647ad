"""A collector in a process of its own, and devices that talk to it over HTTP."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import expost as xp
from expost.device.device import Device
from expost.ledger import Ledger
from expost.ledger.tables import SubjectRow
from support.scripted_devices import HALF, QUARTER, SMOKES

__all__ = [
    "NAMES",
    "Collector",
    "Fleet",
    "Reply",
    "Study",
    "StudySite",
    "mutated",
    "problem",
    "send_fuzzed_bodies",
]

#: The subjects of :class:`Study`.
NAMES = [f"subject {number}" for number in range(40)]

_PATIENCE = 30.0


class Reply(NamedTuple):
    """The answer to a request."""

    status: int
    media_type: str
    content: bytes

    @property
    def tree(self) -> Any:
        return json.loads(self.content)


class Collector:
    """``expost serve`` on a free port of this machine."""

    def __init__(self, database: str, checkpoint: Path, *options: str) -> None:
        self._arguments = [
            sys.executable, "-m", "expost", "serve", database, "--checkpoint", str(checkpoint),
            "--port", "0", "--rate", "100000", *options,
        ]  # fmt: skip
        self.log = checkpoint.with_suffix(".log")
        self.administrator = ""
        self.start()

    def start(self, *options: str) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._arguments, *options], stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            what, _, last = line.strip().rpartition(" ")
            if what.startswith("administrator token"):
                self.administrator = last
            if what == "listening on":
                self.port = int(last.rpartition(":")[2])
                return
        self._process.stdout.close()
        self._process.wait(_PATIENCE)
        raise AssertionError(f"the collector does not start: {self.log.read_text('utf-8')}")

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return the exit code of a collector that stops by itself."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(_PATIENCE)

    def close(self) -> None:
        if self._process.poll() is None:
            self.stop(signal.SIGKILL)

    def memory(self) -> int:
        """Return the bytes that the process has in memory."""
        status = Path(f"/proc/{self._process.pid}/statm").read_text("utf-8")
        return int(status.split()[1]) * os.sysconf("SC_PAGESIZE")

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)

    def call(
        self,
        method: str,
        path: str,
        token: str = "",
        body: Any = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Reply:
        """Send a request; a body that is no bytes is sent as JSON."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if connection is None:
            with closing(self.connection()) as connection:
                return self.call(method, path, token, content, connection)
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        return Reply(response.status, response.getheader("Content-Type", ""), response.read())

    def succeed(self, method: str, path: str, token: str = "", body: Any = None) -> Any:
        """Send a request that succeeds, and return the JSON of the answer."""
        reply = self.call(method, path, token, body)
        assert 200 <= reply.status < 300, reply
        return reply.tree

    def token(self, *scopes: str, **fields: Any) -> str:
        """Make a token."""
        body = {"scopes": scopes, **fields}
        return str(self.succeed("POST", "/v1/tokens", self.administrator, body)["token"])


class Fleet:
    """Devices by subject, with their tokens."""

    def __init__(self, collector: Collector, folder: Path) -> None:
        self.collector, self._folder = collector, folder
        self.devices: dict[str, Device] = {}
        self.tokens: dict[str, str] = {}

    def enroll(self, invitations: Iterable[dict[str, Any]], values: Any = ("no", "yes")) -> None:
        """Create a device for each invitation, with the values in turn."""
        policy = self.collector.call("GET", "/v1/policy").content
        for index, invitation in enumerate(invitations):
            name = invitation["subject"]
            body = {"code": invitation["code"], "device": secrets.token_hex(32)}
            self.tokens[name] = self.collector.succeed("POST", "/v1/enroll", body=body)["token"]
            store = str(self._folder / f"store of {name}")
            Device.create(store, policy, name, json.dumps(values[index % len(values)]))
            self.devices[name] = Device(store)

    def sync(self, names: Iterable[str] | None = None, *, threads: int = 4) -> int:
        """Sync devices until each has nothing to send; return how many requests were answered."""
        with ThreadPoolExecutor(threads) as pool:
            return sum(pool.map(self._sync_one, list(names or self.devices)))

    def _sync_one(self, name: str) -> int:
        with closing(self.collector.connection()) as connection:
            return self._converse(name, connection)

    def _converse(self, name: str, connection: http.client.HTTPConnection) -> int:
        request, answered = self.devices[name].sync(), 0
        while request:
            reply = self.collector.call(
                "POST", "/v1/sync", self.tokens[name], request.encode(), connection
            )
            if reply.status in (429, 503):
                time.sleep(0.05)
                continue
            assert reply.status == 200, reply
            answered += 1
            request = self.devices[name].take(reply.content)
        return answered

    def heads(self) -> dict[str, str]:
        return {name: device.heads[-1] for name, device in self.devices.items()}

    def close(self) -> None:
        for device in self.devices.values():
            device.close()


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

    def close(self) -> None:
        self.fleet.close()
        self.collector.close()


class StudySite:
    """A study with a running collector, a token of each kind, and enrolled devices."""

    def __init__(self, place: str, folder: Path, names: list[str], budget: Any = 2) -> None:
        self.place, self.checkpoint = place, folder / "checkpoint"
        queries = {"half": HALF, "quarter": QUARTER}
        guard = xp.BayesianFilter(epsilon=budget)
        Ledger.create(
            place, SMOKES, filter=guard, queries=queries, checkpoint=self.checkpoint
        ).close()
        self.collector = Collector(place, self.checkpoint)
        self.analyst = self.collector.token("analyst")
        self.registrar = self.collector.token("registrar")
        self.auditor = self.collector.token("auditor")
        self.fleet = Fleet(self.collector, folder)
        self.fleet.enroll(self.invite(names), values=["yes", "yes", "no"])

    def invite(self, names: list[str]) -> Any:
        body = {"subjects": names}
        path = "/v1/invitations"
        return self.collector.succeed("POST", path, self.registrar, body)["invitations"]

    def ask(self, query: str, key: str, **fields: Any) -> Any:
        body = {"query": query, "key": key, **fields}
        return self.collector.succeed("POST", "/v1/rounds", self.analyst, body)

    def recorded(self) -> dict[str, str]:
        """Return the heads in the database of a collector that is stopped."""
        with Ledger(self.place, checkpoint=self.checkpoint) as ledger:
            rows = ledger._engine.backend.scan(SubjectRow)
            return {json.loads(row.name): row.head.hex() for row in rows}

    def close(self) -> None:
        self.fleet.close()
        self.collector.close()


def problem(reply: Reply) -> str:
    """Return the kind of a problem, after checking its form."""
    assert reply.media_type == "application/problem+json", reply
    assert reply.tree["status"] == reply.status, reply
    assert reply.tree.keys() >= {"type", "title", "detail"}, reply
    return str(reply.tree["type"]).removeprefix("urn:expost:problem:")


def mutated(content: bytes, random_: random.Random) -> bytes:
    """Change some bytes, cut, repeat, or nest."""
    data = bytearray(content)
    for _ in range(random_.randint(1, 4)):
        start = random_.randrange(len(data) + 1)
        match random_.randrange(5):
            case 0:
                data[start : start + 1] = random_.randbytes(random_.randint(0, 3))
            case 1:
                del data[start : start + random_.randint(1, 40)]
            case 2:
                data[start:start] = data[: random_.randint(1, 60)]
            case 3:
                data[start:start] = random_.choice([b"[" * 2000, b"NaN", b"1e999", b'"\\ud800"'])
            case _:
                data[start:start] = random_.choice([b"\0", b"\xff", b'",', b"{}", b"null", b"-"])
    return bytes(data)


def send_fuzzed_bodies(study: Study, count: int, seed: int) -> set[str]:
    """Send bodies that no endpoint can use; return the kinds of problems that came back.

    Nobody is suspended by them, and nothing is recorded.
    """
    collector, random_ = study.collector, random.Random(seed)
    foreign = study.fleet.devices[NAMES[1]].sync().encode()
    code = {"code": study.invitations[5]["code"], "device": "0" * 63}
    seeds: list[tuple[str, str, bytes]] = [
        ("/v1/sync", study.tokens["device"], foreign),
        ("/v1/enroll", "", json.dumps(code).encode()),
        ("/v1/rounds", study.tokens["asks-by-name"], b'{"query": {"kind": "linear"}, "key": "a"}'),
        ("/v1/tokens", study.tokens["administrator"], b'{"scopes": ["everything"]}'),
        ("/v1/withdrawals", study.tokens["device"], b'{"subject": "subject 1"}'),
    ]
    before = collector.succeed("GET", "/v1/status", study.tokens["auditor"])
    kinds = set()
    with closing(collector.connection()) as connection:
        for number in range(count):
            path, token, content = seeds[number % len(seeds)]
            body = mutated(content, random_)
            reply = collector.call("POST", path, token, body, connection)
            assert reply.status in (400, 403, 409, 422), (path, body, reply)
            kinds.add(problem(reply))
    after = collector.succeed("GET", "/v1/status", study.tokens["auditor"])
    assert (after["root"], after["states"]) == (before["root"], {"active": len(NAMES)})
    return kinds
