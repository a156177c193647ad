"""One device: what it answers, what it refuses, what it keeps, and what it never shows."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from expost.device import device
from expost.device.device import Device, Refused
from support.one_device import POLICY, QUERY, a_device, reservation

CHANGING = {
    **POLICY,
    "domain": {
        "attributes": {
            "region": ["n", "s"],
            "smokes": {"changing": ["no", "yes", "daily"], "times": 1},
        }
    },
    "filter": {"kind": "bayesian", "epsilon": "100"},
}


def refusal(ann: Device, given: str) -> str:
    """What is said when something is refused, and nothing else happens."""
    before = Path(os.readlink(f"/proc/self/fd/{ann._store.file}")).read_bytes()
    with pytest.raises(Refused) as caught:
        ann.answer(given)
    after = Path(os.readlink(f"/proc/self/fd/{ann._store.file}")).read_bytes()
    assert before == after
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_answers_until_the_budget_is_used_up_and_declines_then(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    said = []
    for _ in range(30):
        message = json.loads(ann.answer(reservation(ann)))
        if "declined" in message:
            break
        said.append(message["response"])
        assert message["head"] == ann.heads[-1]
    assert message["declined"] is True
    assert set(message) == {"ledger", "subject", "sequence", "key", "query", "declined"}
    assert 2 <= len(said) == len(ann.heads) - 1


def test_the_same_reservation_gets_the_same_bytes_also_from_a_new_process(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    asked, said = [], []
    pairs = {"kind": "subset_selection", "size": 2, "epsilon": "0.1"}
    for query in (QUERY, pairs, {**pairs, "size": 1.0}):
        asked.append(reservation(ann, query))
        said.append(ann.answer(asked[-1]))
    assert [ann.answer(each) for each in asked] == said
    ann.close()
    again = Device(str(tmp_path / "store"))
    assert [again.answer(each) for each in asked] == said
    assert len(again.heads) == 4


def test_what_was_declined_stays_declined_under_its_key(tmp_path: Path) -> None:
    ann = a_device(tmp_path)
    big = {"kind": "randomized_response", "epsilon": "2"}
    asked = reservation(ann, big, key="big")
    declined = ann.answer(asked)
    ann.close()
    ann = Device(str(tmp_path / "store"))
    assert ann.answer(asked) == declined
    assert "answered to another" in refusal(ann, reservation(ann, QUERY, key="big"))
    assert "response" in ann.answer(reservation(ann))
    assert "answered to another" in refusal(ann, asked)


UNKNOWN = [
    {"kind": "laplace", "weights": {"value": 1}, "range": [0, 1], "grid": "1", "epsilon": "1"},
    {"kind": "channel", "responses": [0], "probabilities": [["1"]] * 3, "delta": "0.1"},
    {"kind": "of another package", "numbers": [1, 2.5, "a"], "epsilon": "1/2"},
    {"kind": "randomized_response", "epsilon": "1", "about": ["region"]},
]


@pytest.mark.parametrize("query", UNKNOWN, ids=lambda query: query["kind"])
def test_what_it_does_not_know_is_declined(tmp_path: Path, query: Any) -> None:
    ann = a_device(tmp_path)
    assert json.loads(ann.answer(reservation(ann, query)))["declined"] is True
    assert "response" in ann.answer(reservation(ann, key="another"))


def test_the_id_of_a_query_that_it_does_not_know_is_right() -> None:
    import expost as xp

    query = xp.laplace({"age": 1}, range=(0, 120), grid=1, epsilon="1")
    assert device.content_id(device.parse(query.to_json())) == query.content_id
    both = xp.gaussian({"epsilon": 1.5}, range=(0, 2), sigma="2.50", grid="0.5", delta="1e-6")
    assert device.content_id(device.parse(both.to_json())) == both.content_id


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"ledger": "0" * 64}, "not for this device"),
    ({"subject": "bob"}, "not for this device"),
    ({"subject": 7}, "not for this device"),
    ({"sequence": 3}, "old copy"),
    ({"sequence": 0}, "at least 1"),
    ({"sequence": 1.5}, "integer"),
    ({"previous": "0" * 64}, "would not follow"),
    ({"previous": None}, "would not follow"),
    ({"key": ""}, "200 characters"),
    ({"key": "k" * 201}, "200 characters"),
    ({"key": 1}, "text"),
    ({"query": "some id"}, "object"),
    ({"more": 1}, "not known here"),
]


@pytest.mark.parametrize(("other", "words"), WRONG)
def test_what_does_not_follow_is_refused_and_nothing_is_kept(
    tmp_path: Path, other: dict[str, Any], words: str
) -> None:
    ann = a_device(tmp_path)
    assert words in refusal(ann, reservation(ann, **other))


@pytest.mark.parametrize("given", ["", "{", "[]", "1", '{"key": 1, "key": 2}', "\0"])
def test_what_is_no_reservation_is_refused(tmp_path: Path, given: str) -> None:
    assert refusal(a_device(tmp_path), given)


def test_an_old_copy_of_its_store_is_noticed_and_draws_nothing(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    ann.answer(reservation(ann))
    backup = store.read_bytes()
    ann.answer(reservation(ann))
    following = reservation(ann)
    ann.close()
    store.write_bytes(backup)
    restored = Device(str(store))
    assert "old copy" in refusal(restored, following)
    # With other answers of the same number it is not behind, and still does not follow.
    restored.answer(reservation(restored))
    while reservation(restored) == following:  # by chance it drew the same once more
        restored.close()
        store.write_bytes(backup)
        restored = Device(str(store))
        restored.answer(reservation(restored))
    assert "would not follow" in refusal(restored, following)


def test_the_store_is_private_and_whatever_is_not_is_refused(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    with pytest.raises(Refused, match="another process has it open"):
        Device(str(store))
    ann.close()
    with pytest.raises(Refused, match="File exists"):
        Device.create(str(store), json.dumps(POLICY), "ann", '"no"')
    store.chmod(0o640)
    with pytest.raises(Refused, match="mode 600"):
        Device(str(store))
    store.chmod(0o600)
    os.link(store, tmp_path / "other")
    with pytest.raises(Refused, match="hard links"):
        Device(str(store))
    (tmp_path / "other").unlink()
    os.symlink(store, tmp_path / "link")
    with pytest.raises(Refused, match="cannot be opened"):
        Device(str(tmp_path / "link"))
    with pytest.raises(Refused, match="cannot be opened"):
        Device(str(tmp_path / "nowhere"))
    Device(str(store)).close()


def test_a_store_that_was_changed_anywhere_is_refused(tmp_path: Path) -> None:
    ann, store = a_device(tmp_path), tmp_path / "store"
    for _ in range(2):
        ann.answer(reservation(ann))
    ann.close()
    content = store.read_bytes()
    for place in range(0, len(content) - 1, 7):
        changed = bytearray(content)
        changed[place] ^= 1
        if changed[place] == ord("\n") or content[place] == ord("\n"):
            continue
        store.write_bytes(changed)
        with pytest.raises(Refused, match=r"damaged|not finished"):
            Device(str(store))
    spaces = [place for place, each in enumerate(content) if each == ord(" ")]
    for place, bit in [*((place, 0x20) for place in spaces), (len(content) - 1, 1)]:
        changed = bytearray(content)
        changed[place] ^= bit
        store.write_bytes(changed)
        with pytest.raises(Refused, match="damaged"):
            Device(str(store))
    lines = content.splitlines(keepends=True)
    store.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(Refused, match="damaged"):
        Device(str(store))


def test_changes_beyond_the_limit_are_frozen_and_nothing_shows_it(tmp_path: Path) -> None:
    ann = a_device(tmp_path, CHANGING, '{"region": "n", "smokes": "no"}')
    query = {"kind": "channel", "responses": ["no", "yes", "daily"], "about": ["smokes"]}
    truth = {**query, "probabilities": [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]}
    ann.next('{"smokes": "yes"}')
    ann.next('{"smokes": "daily"}')
    ann.next("{}")
    ann.close()
    ann = Device(str(tmp_path / "store"))
    read = device.Query.read(device.parse(json.dumps({**truth, "at": 1})))
    said = []
    for step in range(1, 5):
        read.at = step
        said.append(ann._past.draw(ann.account.asked(read), os.urandom))
    assert said == ["no", "yes", "yes", "yes"]
    assert "step 5 has not come" in refusal(
        ann, reservation(ann, {**QUERY, "about": ["smokes"], "at": 5})
    )
    with pytest.raises(Refused, match="not shown"):
        ann.next('{"region": "s"}')
    ann.next('{"region": "n"}')
    assert "response" in ann.answer(reservation(ann, {**QUERY, "about": ["smokes"], "at": 5}))


def test_a_set_has_no_next_step(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no next step"):
        a_device(tmp_path).next("{}")


BAD_VALUES = ['"geheim hoch zwei"', "17.5", '["sehr geheim"]', '{"value": "geheim"}', "{geheim", ""]


@pytest.mark.parametrize("value", BAD_VALUES)
def test_a_value_outside_the_domain_is_refused_and_not_shown(tmp_path: Path, value: str) -> None:
    with pytest.raises(Refused) as caught:
        a_device(tmp_path, value=value)
    error: BaseException | None = caught.value
    assert not (tmp_path / "store").exists()
    while error is not None:
        frames = traceback.TracebackException.from_exception(error, capture_locals=True)
        ours = [frame for frame in frames.stack if frame.filename == device.__file__]
        shown = "".join([str(error), *(repr(frame.locals) for frame in ours)])
        assert "geheim" not in shown.replace("sehr geheim", "")
        error = error.__cause__ or error.__context__


def test_an_error_while_it_draws_or_stores_shows_neither_value_nor_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = a_device(tmp_path)

    def failing(*given: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(Refused, match="nothing was sent") as caught:
        ann.answer(reservation(ann))
    frames = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame for frame in frames.stack if frame.filename == device.__file__]
    assert len(ours) == 1
    assert '"response"' not in str(ours[0].locals)
    monkeypatch.undo()
    with pytest.raises(Refused, match="start again"):
        ann.answer(reservation(ann))
    assert "geheim" not in repr(ann) + repr(ann._past)
    with pytest.raises(TypeError):
        ann._past.__reduce__()


def test_the_command_line_creates_answers_and_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    value = tmp_path / "value.json"
    value.write_text('"sehr geheim"')

    def run(*arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-I", "-S", device.__file__, *arguments]
        return subprocess.run(
            program, cwd=tmp_path, input=given, capture_output=True, encoding="utf-8", check=False
        )

    create = ["create", "ann", "--policy", "policy.json", "--subject", "ann", "--value"]
    value.chmod(0o644)
    done = run(*create, "value.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("give it mode 600\n")
    value.chmod(0o600)
    done = run(*create, "value.json")
    assert done.returncode == 0
    status = json.loads(done.stdout)
    assert status["answered"] == 0
    asked = {
        "ledger": status["ledger"],
        "subject": "ann",
        "sequence": 1,
        "previous": status["head"],
        "key": "k",
        "query": QUERY,
    }
    lines = "\n".join(map(json.dumps, [asked, {**asked, "sequence": 9}, asked]))
    done = run("answer", "ann", given=lines + "\n")
    first, second = done.stdout.splitlines()
    assert first == second
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert json.loads(run("status", "ann").stdout)["answered"] == 1
    assert run("nonsense").returncode == 2
    assert run("answer").returncode == 1
    assert "sehr geheim" not in done.stderr
