"""A message of the device, decided, drawn and stored, compared with a bare sync.

Processor time of ``take`` with a reservation after many others, with its writes and its sync, which
are most of the waiting time on a device. The same run also writes and syncs the same bytes alone.
"""

from __future__ import annotations

import io
import json
import os
import statistics
import tempfile
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.solver_cases import QUICK
from benchmarks.timing import once
from expost.device.device import Device

__all__ = ["run"]

MILLISECONDS = 1.0
FOLLOWED = 5.0  # if a value changes, and its steps are followed one after the other
ANSWERED = 50 if QUICK else 200
TIMED = 50 if QUICK else 200
RESPONSE = {"kind": "randomized_response", "epsilon": "0.01"}
USEFUL = {
    "kind": "exponential_mechanism",
    "responses": ["a", "b", "c", "d"],
    "utility": [[str(abs(x - y)) for y in range(4)] for x in range(8)],
    "sensitivity": "8",
    "epsilon": "0.01",
}
NAMES = [f"a{k}" for k in range(10)]
RECORDS = {"attributes": {name: list(range(5)) for name in NAMES}}
WEEKS = {"attributes": {"smokes": {"changing": ["no", "yes"], "times": 2}}}


def _cases() -> list[tuple[str, Any, Any, list[Any]]]:
    singles = [{**RESPONSE, "about": [name]} for name in NAMES]
    pairs = [{**RESPONSE, "about": list(pair)} for pair in pairwise(NAMES[:5])]
    record = dict.fromkeys(NAMES, 3)
    weekly = [{**RESPONSE, "about": ["smokes"], "at": step} for step in range(1, 13)]
    return [
        ("8 values", {"values": list(range(8))}, 3, [RESPONSE]),
        ("8 values, a useful response", {"values": list(range(8))}, 3, [USEFUL]),
        ("200 values", {"values": list(range(200))}, 3, [RESPONSE]),
        ("10 attributes, one by one", RECORDS, record, singles),
        ("10 attributes, in pairs", RECORDS, record, pairs),
        ("12 weeks, at most 2 changes", WEEKS, {"smokes": "no"}, weekly),
    ]


def run() -> bool:
    """Return whether a message takes less than the limit beyond its bare write and sync."""
    print(f"a message of the device after {ANSWERED} others, in processor time")
    print(f"  {'':<30}{'a message':>12}{'bare sync':>12}{'ratio':>8}{'of the limit':>15}")
    within = [_row(*case) for case in _cases()]
    return all(within)


def _row(name: str, domain: Any, value: Any, queries: list[Any]) -> bool:
    policy = {
        "version": 1,
        "study": name,
        "nonce": "0" * 32,
        "domain": domain,
        "filter": {"kind": "bayesian", "epsilon": "1000"},
    }
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        Device.create(str(store), json.dumps(policy), "ann", json.dumps(value))
        ann = Device(str(store))
        for _ in range(max((query.get("at", 1) for query in queries), default=1) - 1):
            ann.next()
        messages, bare = [], []
        with open(Path(folder) / "bare", "wb", buffering=0) as file:
            for turn in range(ANSWERED + TIMED):
                answer, before = _answer(ann, queries[turn % len(queries)]), store.stat()
                seconds = once(partial(ann.take, answer))
                added = bytes(store.stat().st_size - before.st_size)
                alone = once(partial(_write_and_sync, file, added))
                if turn >= ANSWERED:
                    messages.append(1000 * seconds)
                    bare.append(1000 * alone)
        ann.close()
    # The lower quartile, because noise only ever adds.
    message, sync = (statistics.quantiles(times, n=4)[0] for times in (messages, bare))
    share = (message - sync) / (FOLLOWED if "at" in queries[0] else MILLISECONDS)
    print(
        f"  {name:<30}{message:>9.2f} ms{sync:>9.2f} ms{message / sync:>7.1f}×{share:>14.2f}×",
        flush=True,
    )
    return share <= 1


def _write_and_sync(file: io.FileIO, added: bytes) -> None:
    file.write(added)
    os.fsync(file)


def _answer(ann: Device, query: Any) -> str:
    """Write the answer of a ledger to a new request, with a reservation."""
    request = json.loads(ann.sync())
    names = {"ledger": request["ledger"], "subject": request["subject"]}
    link = {"sequence": request["sequence"] + 1, "previous": request["head"]}
    reserved = {**names, **link, "key": "k", "query": query, "ticket": "0" * 64}
    state = {"confirmed": request["sequence"], "head": request["head"], "state": "active"}
    envelope = {"nonce": request["nonce"], "receipts": [], "reservation": reserved}
    return json.dumps({**names, **state, **envelope})


if __name__ == "__main__":
    raise SystemExit(not run())
