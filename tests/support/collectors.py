"""A collector in a process of its own, and devices that talk to it over HTTP."""

from __future__ import annotations

import http.client
import json
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
from support.scripted_devices import HALF, SMOKES

__all__ = ["NAMES", "Collector", "Fleet", "Reply", "Study"]

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
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait(_PATIENCE)

    def close(self) -> None:
        if self._process.poll() is None:
            self.stop(signal.SIGKILL)

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
