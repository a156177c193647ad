"""Every endpoint with every scope, and about the own and another subject."""

from __future__ import annotations

import json
from typing import Any

import pytest

from expost.collector._app import ENDPOINTS
from support.collectors import NAMES, Study

SCOPES = (
    "device", "gateway", "analyst", "asks-by-name", "registrar", "auditor", "administrator",
)  # fmt: skip

DRY_RUN = {"query": "half", "dry_run": True}

# For each endpoint: the scopes that it accepts, and a request that such a token may make.
TABLE: dict[tuple[str, str], tuple[str, str, Any]] = {
    ("POST", "/v1/sync"): ("device gateway", "/v1/sync", "SYNC"),
    ("POST", "/v1/sync/batch"): ("gateway", "/v1/sync/batch", b"\n"),
    ("POST", "/v1/withdrawals"): ("device registrar", "/v1/withdrawals", {"subject": NAMES[0]}),
    ("POST", "/v1/rounds"): ("analyst asks-by-name", "/v1/rounds", DRY_RUN),
    ("GET", "/v1/rounds"): ("analyst asks-by-name auditor", "/v1/rounds", None),
    ("GET", "/v1/rounds/{key}"): ("analyst asks-by-name auditor", "/v1/rounds/first", None),
    ("GET", "/v1/groups"): ("analyst asks-by-name registrar", "/v1/groups", None),
    ("PUT", "/v1/groups/{name}"): ("registrar", "/v1/groups/odd", {"subjects": NAMES[1::2]}),
    ("GET", "/v1/status"): ("analyst asks-by-name auditor", "/v1/status", None),
    ("GET", "/v1/estimates"): ("analyst asks-by-name", "/v1/estimates", None),
    ("POST", "/v1/subjects"): ("registrar", "/v1/subjects", {"subjects": NAMES}),
    ("POST", "/v1/invitations"): ("registrar", "/v1/invitations", {"subjects": NAMES[9:10]}),
    ("POST", "/v1/resolutions"): ("registrar", "/v1/resolutions", {"subject": NAMES[1]}),
    ("POST", "/v1/devices/revoked"): ("registrar", "/v1/devices/revoked", {"subject": NAMES[2]}),
    ("GET", "/v1/subjects/{subject}/transcript"): (
        "auditor", "/v1/subjects/subject%201/transcript", None,
    ),
    ("GET", "/v1/audit"): ("auditor", "/v1/audit", None),
    ("GET", "/v1/export"): ("auditor", "/v1/export", None),
    ("GET", "/v1/requests"): ("auditor administrator", "/v1/requests", None),
    ("POST", "/v1/tokens"): ("administrator", "/v1/tokens", {"scopes": ["analyst"]}),
    ("GET", "/v1/tokens"): ("administrator", "/v1/tokens", None),
    ("DELETE", "/v1/tokens/{id}"): ("administrator", "/v1/tokens/TOKEN", None),
    ("GET", "/metrics"): ("administrator", "/metrics", None),
    ("POST", "/v1/end"): ("administrator", "/v1/end", None),
}  # fmt: skip


def test_every_scope_may_do_what_the_table_says(study: Study) -> None:
    collector = study.collector
    assert TABLE.keys() == {(each.method, each.path) for each in ENDPOINTS if each.scopes}
    collector.succeed(
        "POST", "/v1/rounds", study.tokens["analyst"], {"query": "half", "key": "first"}
    )
    request = study.fleet.devices[NAMES[0]].sync().encode()
    victim = collector.token("analyst").partition(".")[0]
    wrong = []
    for (method, _), (allowed, path, body) in TABLE.items():
        path = path.replace("TOKEN", victim)
        content = request if body == "SYNC" else body
        # The scopes that may do it come last, because one of the requests ends the study.
        for scope in sorted(SCOPES, key=lambda scope: scope in allowed.split()):
            status = collector.call(method, path, study.tokens[scope], content).status
            if (status in (200, 201, 202, 404)) != (scope in allowed.split()):
                wrong.append((method, path, scope, status))
        secret = study.tokens[allowed.split()[0]]
        altered = secret[:-1] + ("0" if secret[-1] != "0" else "1")
        for token in ("", "nonsense", altered, f"{'0' * 16}{secret[16:]}"):
            reply = collector.call(method, path, token, content)
            if (reply.status, reply.tree["type"]) != (401, "urn:expost:problem:token-invalid"):
                wrong.append((method, path, token, reply.status))
    assert not wrong
    public = {(each.method, each.path) for each in ENDPOINTS if not each.scopes}
    assert public == {
        ("GET", "/v1/policy"), ("POST", "/v1/enroll"), ("GET", "/healthz"), ("GET", "/readyz"),
    }  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/sync", "/v1/withdrawals"])
def test_a_device_speaks_for_its_own_subject_only(study: Study, path: str) -> None:
    collector, token = study.collector, study.tokens["device"]
    before = collector.succeed("GET", "/v1/status", study.tokens["analyst"])
    foreign = json.loads(study.fleet.devices[NAMES[1]].sync())
    body = foreign if path == "/v1/sync" else {"subject": NAMES[1]}
    replies = [collector.call("POST", path, token, body)]
    if path == "/v1/sync":
        message = json.dumps(
            {name: foreign[name] for name in ("ledger", "subject")}
            | {"sequence": 1, "previous": "0" * 64, "key": "first", "query": "0" * 64}
            | {"ticket": "0" * 64, "declined": True}
        )
        own = json.loads(study.fleet.devices[NAMES[0]].sync())
        replies.append(collector.call("POST", path, token, own | {"messages": [message]}))
    for reply in replies:
        assert (reply.status, reply.tree["type"]) == (403, "urn:expost:problem:foreign-subject")
    after = collector.succeed("GET", "/v1/status", study.tokens["analyst"])
    assert after["states"] == before["states"]


def test_a_gateway_speaks_for_its_group_only(study: Study) -> None:
    collector = study.collector
    gateway = collector.token("gateway", group="odd")
    requests = [study.fleet.devices[NAMES[index]].sync() for index in (0, 1)]
    foreign, own = (
        json.loads(line)
        for line in collector.call(
            "POST", "/v1/sync/batch", gateway, "\n".join(requests).encode()
        ).content.splitlines()
    )
    assert foreign["type"] == "urn:expost:problem:foreign-subject"
    assert own["subject"] == NAMES[1]
    assert collector.call("POST", "/v1/sync", gateway, requests[0].encode()).status == 403


def test_a_token_is_needed_to_ask_by_name(study: Study) -> None:
    body = {"query": "half", "dry_run": True, "subjects": NAMES}
    reply = study.collector.call("POST", "/v1/rounds", study.tokens["analyst"], body)
    assert (reply.status, reply.tree["type"]) == (403, "urn:expost:problem:scope-missing")
    collector, by_name = study.collector, study.tokens["asks-by-name"]
    assert collector.succeed("POST", "/v1/rounds", by_name, body)["subjects"] == len(NAMES)


def test_metrics_count_and_name_nobody(study: Study) -> None:
    text = study.collector.call("GET", "/metrics", study.tokens["administrator"]).content.decode()
    metrics = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
    assert float(metrics["expost_subjects"]) == len(NAMES)
    assert float(metrics["expost_used_up_budgets"]) == 0
    assert float(metrics["expost_commit_seconds_count"]) > 0
    assert "subject 1" not in text


def test_no_secret_and_no_name_is_in_the_log(study: Study) -> None:
    text = study.collector.log.read_text("utf-8")
    assert text.count(" token ") > 100
    assert not any(token.partition(".")[2] in text for token in study.tokens.values())
    assert "subject 1" not in text
