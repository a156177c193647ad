"""Devices that sync through a bad network: a program that the tests run as a process of its own.

    python network_faults.py DEVICE.PY URL SEED STORE...

It opens each store with device.py and syncs it. On the way requests are repeated, held back and
sent much later, and answers are lost. It prints a line of JSON with what happened.
"""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

_ROUNDS = 10


def load(path: str) -> Any:
    """Load the device program as a module."""
    spec = importlib.util.spec_from_file_location("device", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["device"] = module
    spec.loader.exec_module(module)
    module.FIRST_PAUSE = 0.1  # type: ignore[attr-defined]
    return module


def main(program: str, url: str, seed: str, *stores: str) -> None:
    device, chance = load(program), random.Random(seed)
    counts: Counter[str] = Counter()
    held: list[tuple[str, str]] = []

    class BadNetwork(device.Collector):  # type: ignore[misc, name-defined]
        def post(self, path: str, body: str, token: str = "") -> Any:
            counts["requests"] += 1
            fault = chance.random()
            if fault < 0.1:  # the answer is lost, and the device sends the same again
                counts["repeated"] += 1
                super().post(path, body, token)
            elif fault < 0.2:
                held.append((body, token))
            if held and fault > 0.9:  # out of order, after newer requests
                counts["late"] += 1
                super().post(path, *held.pop(chance.randrange(len(held))))
            return super().post(path, body, token)

    waiting = list(stores)
    chance.shuffle(waiting)
    for _ in range(_ROUNDS):
        later = []
        for store in waiting:
            own = device.Device(store)
            try:
                with BadNetwork(url) as collector:
                    device.sync_with(own, collector)
            except device.Offline:
                counts["offline"] += 1
                later.append(store)
            finally:
                own.close()
        waiting = later
    assert not waiting, "the collector did not come back"
    for body, token in held:
        with BadNetwork(url) as collector:
            counts["late"] += 1
            device.Collector.post(collector, "/v1/sync", body, token)
    print(json.dumps(counts))


if __name__ == "__main__":
    assert Path(sys.argv[1]).name == "device.py"
    main(*sys.argv[1:])
