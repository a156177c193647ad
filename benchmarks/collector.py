"""The collector on loopback: processor time of the server for each message.

Batches are compared with the ledger in this process, single messages with an empty endpoint of the
framework. All have the same messages, connections and disk.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import expost as xp
from benchmarks.ledger import BATCH, QUERY, VALUES, Devices
from benchmarks.timing import timed

BATCHES, SINGLE = 3.0, 6.0
"""Aims: × the ledger in process, × an empty endpoint."""
TOLERANCE = 1.5
"""A run fails if it misses an aim by more than this factor."""

SUBJECTS, CONNECTIONS = 2048, 16

_EMPTY = """
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

async def empty(request):
    await request.body()
    return Response(b"{}", media_type="application/json")

class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()
        print(f"listening on http://{host}:{port}", flush=True)

app = Starlette(routes=[Route("/v1/sync", empty, methods=["POST"])])
config = uvicorn.Config(app, port=0, http="httptools", loop="asyncio", log_config=None)
Server(config).run()
"""


def run() -> bool:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        database = Path(folder) / "study.db"
        domain, filter_ = xp.FiniteSet(range(VALUES)), xp.BayesianFilter(epsilon=3)
        queries = {"value": QUERY}
        with xp.Ledger.create(database, domain, filter=filter_, queries=queries) as ledger:
            ledger.register([f"subject {index}" for index in range(SUBJECTS)])
            devices = Devices(ledger)
            ledger.reserve("value", key="round 1")
            requests = _requests(devices, "round 1", 1)
            _, seconds = timed(lambda: [ledger.sync(part) for part in _batches(requests)])
            in_process = seconds / SUBJECTS
            ledger.reserve("value", key="round 2")
        with _server(["-m", "expost", "serve", str(database), "--port", "0", "--rate", "1e9"]) as (
            server,
            lines,
        ):
            administrator = lines[0].split()[-1]
            gateway, analyst = (
                _post(server, "/v1/tokens", administrator, {"scopes": [scope]})["token"]
                for scope in ("gateway", "analyst")
            )
            bodies = [b"\n".join(part) for part in _batches(_requests(devices, "round 2", 2))]
            batches = server.measure("/v1/sync/batch", gateway, bodies, 1) / SUBJECTS
            _post(server, "/v1/rounds", analyst, {"query": "value", "key": "round 3"})
            requests = _requests(devices, "round 3", 3)
            single = server.measure("/v1/sync", gateway, requests, CONNECTIONS) / SUBJECTS
            found = _get(server, "/v1/rounds/round%203", analyst)
            assert found["answered"] == SUBJECTS, found
        with _server(["-c", _EMPTY]) as (server, _):
            empty = server.measure("/v1/sync", "", requests, CONNECTIONS) / SUBJECTS
    return all(
        [
            _print_ratio(f"batches of {BATCH}", batches, in_process, BATCHES, "the ledger alone"),
            _print_ratio("single messages", single, empty, SINGLE, "an empty endpoint"),
        ]
    )


def _print_ratio(operation: str, ours: float, peer: float, aim: float, name: str) -> bool:
    print(
        f"collector, {operation}: {ours / peer:.1f} × {name} (aim {aim:g}), {1e6 * ours:.0f} µs "
        f"of processor time a message and {1e6 * peer:.0f}"
    )
    return ours / peer <= aim * TOLERANCE


def _batches(requests: Sequence[bytes]) -> list[Sequence[bytes]]:
    return [requests[start : start + BATCH] for start in range(0, len(requests), BATCH)]


def _requests(devices: Devices, key: str, sequence: int) -> list[bytes]:
    """Return sync requests with one message each."""
    requests = []
    for message in devices.messages(key, sequence):
        fields = json.loads(message)
        request = {
            "ledger": fields["ledger"],
            "subject": fields["subject"],
            "sequence": sequence,
            "head": fields["head"],
            "nonce": "0" * 32,
            "messages": [message.decode()],
            "queries": {},
        }
        requests.append(json.dumps(request).encode())
    return requests


class _Server:
    """A server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._process = process
        self._port = int(address.rpartition(":")[2])

    def seconds(self) -> float:
        """Return the processor time that it has used."""
        state = Path(f"/proc/{self._process.pid}/stat").read_text("utf-8")
        fields = state.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, method: str, path: str, token: str, bodies: Sequence[bytes | None]) -> bytes:
        """Send requests on one connection; return the last answer."""
        answer = b""
        with closing(http.client.HTTPConnection("127.0.0.1", self._port)) as connection:
            for body in bodies:
                connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
                response = connection.getresponse()
                answer = response.read()
                assert response.status < 300, answer
        return answer

    def measure(self, path: str, token: str, bodies: Sequence[bytes], connections: int) -> float:
        """Return the processor time for these requests."""
        before = self.seconds()
        threads = [
            threading.Thread(
                target=self.send, args=("POST", path, token, bodies[index::connections])
            )
            for index in range(connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.seconds() - before


@contextmanager
def _server(arguments: list[str]) -> Iterator[tuple[_Server, list[str]]]:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if line.startswith("listening on"):
            break
    try:
        yield _Server(process, lines[-1]), lines
    finally:
        process.terminate()
        process.communicate()


def _post(server: _Server, path: str, token: str, body: Any) -> Any:
    return json.loads(server.send("POST", path, token, [json.dumps(body).encode()]))


def _get(server: _Server, path: str, token: str) -> Any:
    return json.loads(server.send("GET", path, token, [None]))


if __name__ == "__main__":
    sys.exit(not run())
