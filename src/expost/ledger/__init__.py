"""The durable record of a study. Devices draw the random responses; the ledger records them.

**The pieces.** A *subject* is a participant. Its kind is fixed at registration: *device* (its
device answers), *imported* (it was asked elsewhere) or *simulated*. An *exchange* is a query and
its response; a *reservation* holds the next exchange for the device. A *message* is what a device
released for a reservation, and a *receipt* is what became of it. Ledger and device each have
the *chain* of a subject: digests of its exchanges. The *checkpoint* is a file outside the database
with a line per commit.

**An exchange, end to end.** ``reserve`` asks the filter whether the recorded answers of each
subject leave room for a query (_requests.py). When a device syncs, it reports its chain and gets
its reservation. From its own record it decides whether to answer. If so, it draws, stores its
message, and sends it with the next sync; otherwise it declines (_device_messages.py). A message
that matches its reservation is recorded, once however often it arrives. Any other message is
quarantined and its subject suspended, until an operator resolves it. ``record`` takes imported
answers, ``ask`` simulates devices.

**Durability.** Requests of concurrent threads share a *batch* (_batch.py), which becomes one
commit. ``CommitEngine._make_durable`` commits it to the database, then appends the checkpoint
line, and flushes each to disk. Only then does a receipt, a reservation or a refusal leave the
process. After a crash in between, the next writer appends the line. One process writes at a time.
The database is SQLite or PostgreSQL (backend.py).

**After a restore.** A database that is behind its checkpoint does not open (``LedgerBehind``). The
operator calls ``Ledger.recover`` (_recovery.py). Every device subject is then *unconfirmed*: it is
asked nothing until its device syncs and sends what the database has lost. A *ticket* in each
message proves that the ledger issued its reservation. Never restore the checkpoint together with
the database: it lists what no device can send again.

>>> import tempfile
>>> import expost as xp
>>> from expost.device.device import Device
>>> with tempfile.TemporaryDirectory() as folder:
...     smokes, budget = xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1)
...     with xp.Ledger.create(f"{folder}/study.db", smokes, filter=budget) as ledger:
...         _ = ledger.register(["ann"])
...         value = '"yes"'  # JSON; it never leaves the device
...         Device.create(f"{folder}/ann", ledger.policy.to_json(), "ann", value)
...         device = Device(f"{folder}/ann")
...         outcomes = ledger.reserve(xp.randomized_response(epsilon="0.5"), key="week 1")
...         request = device.sync()
...         while request:  # until the device has nothing more to send
...             (answer,) = ledger.sync([request])
...             request = device.take(answer.to_json())
...         device.close()
...         outcomes[0].outcome, len(ledger.transcript("ann"))
('reserved', 1)
"""

from __future__ import annotations

from expost.ledger._audit import QuarantinedMessage, StudyAudit
from expost.ledger._checkpoint import CheckpointFile, CheckpointStore
from expost.ledger._history import Round
from expost.ledger._ledger import Ledger
from expost.ledger._policy import StudyPolicy
from expost.ledger._protocol import Receipt, Reservation, SyncAnswer
from expost.ledger._reader import Status
from expost.ledger._recovery import Recovery
from expost.ledger._requests import Outcome
from expost.ledger._verification import Verification
from expost.ledger.backend import Backend, Tip
from expost.ledger.errors import (
    LedgerBehind,
    LedgerBroken,
    LedgerDamaged,
    LedgerLocked,
    LedgerStopped,
)

__all__ = [
    "Backend",
    "CheckpointFile",
    "CheckpointStore",
    "Ledger",
    "LedgerBehind",
    "LedgerBroken",
    "LedgerDamaged",
    "LedgerLocked",
    "LedgerStopped",
    "Outcome",
    "QuarantinedMessage",
    "Receipt",
    "Recovery",
    "Reservation",
    "Round",
    "Status",
    "StudyAudit",
    "StudyPolicy",
    "SyncAnswer",
    "Tip",
    "Verification",
]
