"""A study over HTTP alone, with real processes, while everything fails that can.

Devices sync in processes of their own through a bad network (network_faults.py), some are offline
for rounds, the collector is killed while they sync, and its database is restored from a backup.
"""

from __future__ import annotations

import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import expost as xp
from expost.collector import CollectorEstimates
from expost.device import checks, device
from expost.ledger import Ledger
from expost.ledger.tables import SubjectRow
from support import network_faults
from support.backup_sites import FileSite, PostgresSite
from support.collectors import Collector
from support.scripted_devices import HALF, QUARTER, SMOKES

__all__ = ["NetworkStudy", "Report"]

_PROCESSES = 2
_PATIENCE = 600


class Report(NamedTuple):
    """What happened."""

    counts: Counter[str]
    exchanges: int
    estimates: CollectorEstimates
    #: The share of subjects with the value yes.
    truth: float


class NetworkStudy:
    """A study with a collector and enrolled devices; ``play`` runs it and checks what must hold."""

    def __init__(self, site: FileSite | PostgresSite, folder: Path, count: int, seed: int) -> None:
        self.site, self._folder, self._seed = site, folder, seed
        self._chance = random.Random(seed)
        self.names = [f"subject {number}" for number in range(count)]
        self.counts: Counter[str] = Counter()
        guard = xp.BayesianFilter(epsilon=1)
        queries = {"half": HALF, "quarter": QUARTER}
        Ledger.create(
            site.place, SMOKES, filter=guard, queries=queries, checkpoint=site.checkpoint
        ).close()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.server = Collector(site.place, site.checkpoint, "--port", str(port))
        with xp.Collector(self.url, self.server.administrator) as administrator:
            tokens = [administrator.make_token(x) for x in ("analyst", "registrar", "auditor")]
        self.analyst, self.registrar, self.auditor = (xp.Collector(self.url, x) for x in tokens)
        self._enroll()

    def close(self) -> None:
        for client in (self.analyst, self.registrar, self.auditor):
            client.close()
        self.server.close()

    def _store(self, name: str) -> str:
        return str(self._folder / f"store of {name}")

    def _enroll(self) -> None:
        policy = self.analyst.policy().to_json()
        self.values = [self._chance.choice(["yes", "yes", "no"]) for _ in self.names]
        codes = self.registrar.invite(self.names)
        with device.Collector(self.url) as collector:
            for name, value in zip(self.names, self.values, strict=True):
                device.Device.create(self._store(name), policy, name, json.dumps(value))
                own = device.Device(self._store(name))
                device.enroll(own, collector, codes[name])
                own.close()

    def _sync(self, names: Sequence[str], meanwhile: Callable[[], None] = lambda: None) -> None:
        """Sync devices in processes, which must all come to an end."""
        self._seed += 1
        programs = []
        for part in range(_PROCESSES):
            stores = [self._store(name) for name in names[part::_PROCESSES]]
            program = [sys.executable, network_faults.__file__, device.__file__, self.url]
            arguments = [*program, f"{self._seed} {part}", *stores]
            programs.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True))
        meanwhile()
        for running in programs:
            printed, _ = running.communicate(timeout=_PATIENCE)
            assert running.returncode == 0
            self.counts.update(json.loads(printed))

    def _kill(self) -> None:
        """Kill the collector in the middle of the syncs, and start it again."""
        before = self.analyst.status().answers
        deadline = time.monotonic() + _PATIENCE
        while self.analyst.status().answers < before + len(self.names) // 4:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert self.server.stop(signal.SIGKILL) == -signal.SIGKILL
        self.server.start()
        self.counts["killed"] += 1

    def _ask(self, key: str) -> int:
        """Ask a round again; return how many subjects it has not reached."""
        query = "half" if int(key) % 2 else "quarter"
        progress = self.analyst.round(query, key)
        assert progress.subjects == len(self.names)
        return progress.later + progress.waiting

    def _restore(self) -> None:
        assert self.server.stop(signal.SIGTERM) == 0
        self.site.restore()
        found = Ledger.recover(self.site.place, checkpoint=self.site.checkpoint)
        assert found.unconfirmed
        self.server.start()
        self.counts["restored"] += 1

    def play(self, *, rounds: int = 5, kills: int = 1, confidence: str = "0.999999") -> Report:
        killed_in = set(self._chance.sample(range(1, rounds + 1), kills))
        backup_in = rounds // 2 + 1
        for number in range(1, rounds + 1):
            self._ask(str(number))
            online = [name for name in self.names if self._chance.random() < 0.8]
            if number == backup_in:
                with Ledger(self.site.place, checkpoint=self.site.checkpoint) as ledger:
                    self.site.save(ledger)
            self._sync(online, self._kill if number in killed_in else lambda: None)
            if number == backup_in + 1:
                self._restore()
        for _ in range(rounds + 1):
            self._sync(self.names)
            if not sum([self._ask(str(number)) for number in range(1, rounds + 1)]):
                break
        else:
            raise AssertionError("some subjects are never asked")
        return self._check(rounds, confidence)

    def _check(self, rounds: int, confidence: str) -> Report:
        """Check all that must hold at the end."""
        finished = self.analyst.rounds()
        assert [done.key for done in finished] == [str(n + 1) for n in range(rounds)]
        for done in finished:
            assert done.answered + done.refused == len(self.names), done
            assert done.waiting == done.declined == 0, done
        estimates = self.analyst.estimate(confidence=confidence)
        truth = self.values.count("yes") / len(self.values)
        (yes,) = (row for row in estimates.rows if row.of == "yes")
        assert yes.lower <= truth <= yes.upper, (yes, truth)
        verdict = self.auditor.audit()
        assert verdict.good, verdict
        assert not [*verdict.suspended, *verdict.unconfirmed, *verdict.quarantined], verdict
        export = self._folder / "export.jsonl"
        self.auditor.export(export)
        exchanges = self._check_chains()
        assert verdict.exchanges == exchanges == sum(done.answered for done in finished)
        checked = subprocess.run(
            [sys.executable, "-I", str(checks.__file__), "export", str(export)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        expected = f"{len(self.names):,} subjects, {exchanges:,} exchanges: "
        plain = checked.stdout.replace(",", "")
        assert (expected + "chains, tallies and decisions are right").replace(",", "") in plain
        return Report(self.counts, exchanges, estimates, truth)

    def _check_chains(self) -> int:
        """Compare the chain of every device with that of the ledger; return all exchanges."""
        some = self._chance.sample(self.names, 3)
        transcripts = {name: self.auditor.transcript(name) for name in some}
        assert self.server.stop(signal.SIGTERM) == 0
        with Ledger(self.site.place, checkpoint=self.site.checkpoint) as ledger:
            rows: list[Any] = list(ledger._engine.backend.scan(SubjectRow))
        heads = {json.loads(row.name): row.head.hex() for row in rows}
        exchanges = 0
        for name in self.names:
            own = device.Device(self._store(name))
            assert own.heads[-1] == heads[name], name
            exchanges += len(own.heads) - 1
            if name in transcripts:
                responses = [json.loads(message)["response"] for message in own._sent]
                assert [x.response for x in transcripts[name].exchanges] == responses
            own.close()
        return exchanges
