"""Every mutant of the device is noticed, by the conformance vectors or by what a device must do."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.make import VECTORS
from expost.device import checks, device
from support.killing_devices import killed
from support.one_device import POLICY, QUERY, reservation

SOURCE = Path(device.__file__).read_text("utf-8")

BY_VECTORS = [
    # weights and comparisons
    ("            return low\n        digits", "            return low + 1\n        digits"),
    ("bits = 40 + (math.ceil(1 / epsilon) - 1)", "bits = 39 + (math.ceil(1 / epsilon) - 1)"),
    ("        return top <= bottom\n", "        return top < bottom\n"),
    ("        if high <= least or low > most:\n", "        if True:\n"),
    ("low * more, limit - added)", "low * more, limit)"),
    ("low * more, limit - added)", "low, limit - added)"),
    ("if 7 * (top.bit_length()", "if 6 * (top.bit_length()"),
    ("bottom.bit_length() + 1) <= 10 * limit", "bottom.bit_length()) <= 10 * limit"),
    # families
    ("if classes[high] != classes[low]:", "if True:"),
    ("highest, lowest = max(highs[x] for x in others)", "highest, lowest = max(highs)"),
    ("return [(highs[high], lows[low]), *apart]", "return [*apart]"),
    ("% len(buckets) for x in firsts", "% 7 % len(buckets) for x in firsts"),
    ("two_weights(query[\"epsilon\"] / parts)", "two_weights(query[\"epsilon\"])"),
    ("start = count - place - 1", "start = count - place"),
    ("free = (row & -row) - 1", "free = 0"),
    ("mixed = (width + 2)", "mixed = (width + 1)"),
    ("span = int(double_below(", "span = int(float("),
    ("sorted(range(len(names)), key=names.__getitem__), []", "list(range(len(names))), []"),
    ("return total - light ** (distance + 1)", "return total - light ** distance"),
    ("worst = by_columns([column(low), column(high)])", "worst = by_columns([column(low)])"),
    ("if any(each)}", "if each}"),
    # what was answered
    ("zeros = min(((x & -x).bit_length() for x in after if x), default=1) - 1",
     "zeros = max(((x & -x).bit_length() for x in after if x), default=1) - 1"),
    ("for choose in (max, min)]", "for choose in (max, max)]"),
    ("used = range(min(times, len(steps)) + 1)", "used = range(min(times, len(steps)) + 2)"),
    ("attribute.step or 0) * (two - one)", "attribute.step or 0)"),
    ("n + (a != b)) for (a, b), n", "n + 1) for (a, b), n"),
    ("if not attribute.limited or len(steps) < 2:", "if True:"),
    ("if kind != \"bayesian\" or not min(lows):", "if kind == \"basic\" or not min(lows):"),
    ("self.spent += asked.query[\"epsilon\"]", "self.spent = asked.query[\"epsilon\"]"),
    # freezing and drawing
    ("used >= self.times", "used > self.times"),
    ("key=lambda k: (self.distance(k, wanted), self.values[k])", "key=lambda k: self.values[k]"),
    ("while uniform >= limit:", "while uniform > limit:"),
    ("// 8, limit\n", "// 8 + 1, limit\n"),
    ("place = place * size + kept[names.index(name)]", "place = kept[names.index(name)]"),
    # ids
    ("return (entry + 0.0).hex()", "return repr(entry)"),
    ("return \"'\" + entry if entry", "return entry if entry"),
    ("(response), \"sequence\": sequence", "(response), \"sequence\": 1"),
    ("lambda given: text(given).lower()", "text"),
]  # fmt: skip

BY_USE = [
    ("            os.fsync(self.file)\n", "            pass\n"),
    ("            os.ftruncate(self.file, end)\n", "            pass\n"),
    ("        self._store.add({**new, \"sent\": sent})\n", ""),
    ("            self._store.add({\"declined\": kept})\n", ""),
    ("kept = self._sent[sequence - 1] if sequence <= own else kept", "pass"),
    ("        need(follows, ", "        need(True, "),
    ("need(sequence <= own + 1, ", "sequence = min(sequence, own + 1)\n        need(True, "),
    ("            need(same, f\"number", "            need(True, f\"number"),
    ("if self._digest(packed).encode() != ending:", "if False:"),
    ("fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass"),
    ("check_private(self.file, \"the store\")", "pass"),
    ("if decide(self.policy.filter, self.account, asked) else None", "if True else None"),
    ("need(step <= now, ", "need(True, "),
    ("self.broken, packed = True, ", "self.broken, packed = False, "),
    ("        self._store.broken = False\n        return sent", "        return sent"),
    ("flags, 0o600)", "flags, 0o666)"),
]  # fmt: skip


def mutant(old: str, new: str) -> Any:
    assert SOURCE.count(old) == 1, (SOURCE.count(old), old)
    module = types.ModuleType("a_mutant")
    exec(compile(SOURCE.replace(old, new), "a_mutant.py", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize(("old", "new"), BY_VECTORS)
def test_the_vectors_notice_every_mutant(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = mutant(old, new)
    monkeypatch.setattr(checks, "device", module)
    assert any(wrong(module, path) for path in sorted(VECTORS.glob("*.json")))


def wrong(module: Any, path: Path) -> bool:
    """Whether some case of a file is not answered as it should be."""
    content = path.read_text("utf-8")
    expected = [case["expected"] for case in json.loads(content)["cases"]]
    for case, right in zip(module.parse(content)["cases"], expected, strict=True):
        try:
            if checks.conform(case["check"], case["given"]) != right:
                return True
        except Exception:
            return True
    return False


@pytest.mark.parametrize(("old", "new"), BY_USE)
def test_what_a_device_must_do_notices_every_mutant(tmp_path: Path, old: str, new: str) -> None:
    module = mutant(old, new)
    with pytest.raises((AssertionError, module.Refused, LookupError, ValueError)):
        play(module, tmp_path)


def test_the_device_itself_is_no_mutant(tmp_path: Path) -> None:
    play(device, tmp_path)


def play(module: Any, tmp_path: Path) -> None:
    for scenario in SCENARIOS:
        folder = tmp_path / scenario.__name__
        folder.mkdir()
        scenario(module, folder)


def start(module: Any, folder: Path, policy: Any = POLICY, value: str = '"no"') -> tuple[Any, str]:
    store = str(folder / "store")
    os.umask(0o022)
    module.Device.create(store, json.dumps(policy), "ann", value)
    return module.Device(store), store


def refuses(module: Any, call: Callable[[], Any]) -> bool:
    try:
        call()
    except module.Refused:
        return True
    return False


def stays_the_same(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    queries = [{"kind": "randomized_response", "epsilon": "0.01"}] * 8
    given = []
    for query in queries:
        given.append((reservation(ann, query), ann.answer(reservation(ann, query))))
        assert "response" in given[-1][1]
    big = reservation(ann, {"kind": "randomized_response", "epsilon": "3"}, key="big")
    declined = ann.answer(big)
    assert "declined" in declined
    ann.close()
    again = module.Device(store)
    assert [again.answer(each) for each, _ in given] == [said for _, said in given]
    content = Path(store).read_bytes()
    assert json.dumps(declined).encode() in content
    assert again.answer(big) == declined
    assert Path(store).read_bytes() == content
    again.close()


def refuses_what_does_not_follow(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    for other in ({"sequence": 2}, {"sequence": 5}, {"previous": "0" * 64}):
        assert refuses(module, lambda other=other: ann.answer(reservation(ann, **other)))  # type: ignore[misc]
    first = reservation(ann)
    ann.answer(first)
    assert refuses(module, lambda: ann.answer(json.dumps({**json.loads(first), "key": "x"})))
    ann.close()


def waits_for_steps(module: Any, folder: Path) -> None:
    domain = {"attributes": {"smokes": {"changing": ["no", "yes"]}}}
    ann, _ = start(module, folder, {**POLICY, "domain": domain}, '{"smokes": "no"}')
    later = reservation(ann, {**QUERY, "about": ["smokes"], "at": 2})
    assert refuses(module, lambda: ann.answer(later))
    ann.close()


def keeps_a_private_sound_store(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    assert Path(store).stat().st_mode & 0o777 == 0o600
    assert refuses(module, lambda: module.Device(store))
    ann.answer(reservation(ann))
    ann.close()
    content = Path(store).read_bytes()
    assert b'"value":[1]' in content
    Path(store).write_bytes(content.replace(b'"value":[1]', b'"value":[2]'))
    assert refuses(module, lambda: module.Device(store))
    Path(store).write_bytes(content + b"x" * 3000)
    again = module.Device(store)
    following = reservation(again)
    said = again.answer(following)
    again.close()
    third = module.Device(store)
    assert third.answer(following) == said
    third.close()
    assert b"x" * 100 not in Path(store).read_bytes()
    Path(store).chmod(0o644)
    assert refuses(module, lambda: module.Device(store))


def syncs_and_stops_after_a_failure(module: Any, folder: Path) -> None:
    ann, _ = start(module, folder)
    calls = []

    def failing(file: int) -> None:
        calls.append(file)
        raise OSError(5, "Input/output error")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        assert refuses(module, lambda: ann.answer(reservation(ann)))
    assert calls
    assert refuses(module, lambda: ann.answer(reservation(ann)))
    ann.close()


def survives_being_killed(module: Any, folder: Path) -> None:
    ann, store = start(module, folder)
    following = reservation(ann)
    ann.close()
    for at in range(1, 30):

        def answer() -> None:
            own = module.Device(store, lambda count: os.urandom(count))
            os.write(1, own.answer(following).encode())
            own.close()

        was_killed, released = killed(answer, at, torn=True)
        own = module.Device(store)
        said = own.answer(following)
        assert released in (b"", said.encode())
        own.close()
        if not was_killed:
            break


SCENARIOS = [
    stays_the_same,
    refuses_what_does_not_follow,
    waits_for_steps,
    keeps_a_private_sound_store,
    syncs_and_stops_after_a_failure,
    survives_being_killed,
]
