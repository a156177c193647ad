"""The page of the collector and the OpenAPI document agree with the table of endpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

from expost.collector._app import ENDPOINTS
from expost.collector._openapi import describe
from expost.collector._server import check_address
from expost.collector._tokens import SCOPES
from expost.errors import InvalidInput

PAGE = Path(__file__).parents[2] / "docs/reference/collector.md"

# Answers of all endpoints with a token, or with a body, which the page says once.
COMMON = {400, 401, 413, 429, 503}


def rows() -> list[str]:
    """Return the table of the page as the endpoints have it."""
    found = []
    for endpoint in ENDPOINTS:
        problems = {*endpoint.statuses()} - COMMON - ({403} - {*endpoint.problems})
        statuses = ", ".join(map(str, sorted({*endpoint.answers, *problems})))
        scopes = ", ".join(f"`{scope}`" for scope in endpoint.scopes) or "public"
        request = f"`{endpoint.method} {endpoint.path}`"
        found.append(f"| {request} | {scopes} | {statuses} | {endpoint.reveals} |")
    return found


def test_the_page_lists_every_endpoint_and_scope() -> None:
    page = PAGE.read_text("utf-8")
    listed = [line for line in page.splitlines() if re.match(r"\| `(GET|POST|PUT|DELETE) ", line)]
    assert listed == rows()
    section = page.partition("## Tokens")[2].partition("## ")[0]
    assert re.findall(r"^\| `([\w-]+)`", section, re.MULTILINE) == list(SCOPES)


def test_openapi_has_every_status_of_every_endpoint() -> None:
    document = json.loads(json.dumps(describe(ENDPOINTS)))
    assert document["openapi"] == "3.1.0"
    for endpoint in ENDPOINTS:
        operation = document["paths"][endpoint.path][endpoint.method.lower()]
        statuses = {*endpoint.answers, *endpoint.statuses()}
        assert {*operation["responses"]} == {*map(str, statuses)}
        assert ("security" in operation) == bool(endpoint.scopes)
        named = {entry["name"] for entry in operation["parameters"] if entry["in"] == "path"}
        assert named == {*re.findall(r"{(\w+)}", endpoint.path)}
    references = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert references <= document["components"]["schemas"].keys()


def test_other_addresses_need_encryption() -> None:
    allowed = []
    for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "192.168.1.5", "example.org"):
        for tls, insecure in ((False, False), (True, False), (False, True)):
            try:
                check_address(host, tls=tls, insecure=insecure)
            except InvalidInput:
                continue
            allowed.append((host, tls, insecure))
    plain = [host for host, tls, insecure in allowed if not (tls or insecure)]
    assert plain == ["127.0.0.1", "::1", "localhost"]
    assert len(allowed) == 15
