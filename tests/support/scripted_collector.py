"""A collector over HTTP whose answers a test chooses."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CERTIFICATE", "Request", "ScriptedCollector", "scripted"]

#: A key and its certificate for localhost, valid until 2099; it protects nothing.
CERTIFICATE = Path(__file__).with_name("localhost.pem")


class Request(NamedTuple):
    """What arrived."""

    path: str
    token: str
    content: bytes

    @property
    def tree(self) -> Any:
        return json.loads(self.content)


class ScriptedCollector(NamedTuple):
    """Its URL, and all requests so far."""

    url: str
    requests: list[Request]


@contextmanager
def scripted(
    answer: Callable[[Request], tuple[int, Any] | None], *, tls: bool = False
) -> Iterator[ScriptedCollector]:
    """Run a collector that answers by a function: status and JSON, or None to hang up."""
    requests: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.path, self.headers.get("Authorization", ""), content)
            requests.append(request)
            answered = answer(request)
            if answered is None:
                self.close_connection = True
                return
            status, tree = answered
            body = tree.encode() if isinstance(tree, str) else json.dumps(tree).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST  # noqa: N815

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    scheme, host = "http", "127.0.0.1"
    if tls:
        scheme, host = "https", "localhost"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield ScriptedCollector(f"{scheme}://{host}:{server.server_port}", requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
