"""Bodies that no endpoint can use: one problem each, nobody suspended, nothing recorded."""

from __future__ import annotations

from typing import Any

import pytest

from support.collectors import NAMES, Study, problem, send_fuzzed_bodies


def test_fuzzed_bodies_get_one_problem_each_and_change_nothing(study: Study) -> None:
    kinds = send_fuzzed_bodies(study, 1000, seed=36)
    assert {"invalid-body", "foreign-subject", "invalid-input"} <= kinds


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/v1/nothing", None, (404, "unknown-path")),
        ("PATCH", "/v1/rounds", None, (405, "wrong-method")),
        ("GET", "/v1/status?group=nobody", None, (404, "unknown-group")),
        ("GET", "/v1/status?grop=odd", None, (400, "invalid-parameters")),
        ("GET", "/v1/rounds/never", None, (404, "unknown-round")),
        ("POST", "/v1/rounds", {"query": "half"}, (400, "invalid-body")),
        ("POST", "/v1/rounds", {"query": "nothing", "key": "a"}, (422, "invalid-input")),
        ("POST", "/v1/rounds", b"x" * (4 << 20) + b"x", (413, "body-too-large")),
        ("GET", "/v1/estimates?wait=20&share=x", None, (422, "invalid-input")),
    ],
)
def test_an_unusable_request_gets_a_problem(
    study: Study, method: str, path: str, body: Any, expected: tuple[int, str]
) -> None:
    reply = study.collector.call(method, path, study.tokens["analyst"], body)
    assert (reply.status, problem(reply)) == expected


def test_a_group_and_all_differences_of_groups_are_large_enough(study: Study) -> None:
    collector, registrar = study.collector, study.tokens["registrar"]
    members = {
        "too small": NAMES[:19],
        "all but one": NAMES[1:],
        "half odd, half even": NAMES[:20],
        "a stranger": [*NAMES[:20], "stranger"],
    }
    for name, subjects in members.items():
        path = f"/v1/groups/{name.replace(' ', '%20')}"
        reply = collector.call("PUT", path, registrar, {"subjects": subjects})
        kind = "unknown-subject" if name == "a stranger" else "group-too-small"
        assert (reply.status, problem(reply)) == (422, kind)
    assert collector.call("PUT", "/v1/groups/odd", registrar, {"subjects": NAMES}).status == 409
    listed = collector.succeed("GET", "/v1/groups", study.tokens["analyst"])
    assert listed == {"groups": [{"name": "odd", "subjects": 20}]}
    status = collector.succeed("GET", "/v1/status?group=odd", study.tokens["analyst"])
    assert status["subjects"] == 20


def test_a_key_belongs_to_one_query_and_one_group(study: Study) -> None:
    collector, analyst = study.collector, study.tokens["analyst"]
    body = {"query": "half", "key": "one key", "group": "odd"}
    first = collector.succeed("POST", "/v1/rounds", analyst, body)
    assert collector.succeed("POST", "/v1/rounds", analyst, body) == first
    for changed in ({"group": None}, {"query": {"kind": "randomized_response", "epsilon": "1"}}):
        reply = collector.call("POST", "/v1/rounds", analyst, body | changed)
        assert (reply.status, problem(reply)) == (409, "key-used")
    by_name = study.tokens["asks-by-name"]
    named = {"query": "half", "key": "by name", "subjects": [NAMES[0], NAMES[2]]}
    collector.succeed("POST", "/v1/rounds", by_name, named)
    assert collector.call("GET", "/v1/rounds/by%20name", analyst).status == 404
    assert collector.succeed("GET", "/v1/rounds/by%20name", by_name)["subjects"] == 2


def test_a_group_that_became_small_is_not_asked(study: Study) -> None:
    collector, analyst = study.collector, study.tokens["analyst"]
    gone = {"subject": NAMES[1]}
    collector.succeed("POST", "/v1/withdrawals", study.tokens["registrar"], gone)
    reply = collector.call("GET", "/v1/status?group=odd", analyst)
    assert (reply.status, problem(reply)) == (403, "group-too-small")
    assert (reply.tree["size"], reply.tree["smallest"]) == (19, 20)
    assert collector.succeed("GET", "/v1/status", analyst)["subjects"] == len(NAMES) - 1
    seen = collector.succeed("GET", "/v1/status?group=odd", study.tokens["auditor"])
    assert seen["subjects"] == 19
