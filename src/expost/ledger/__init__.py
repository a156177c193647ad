"""The durable record of a study. Devices draw; the ledger records.

**The pieces.** A subject is someone in the study, of one kind from registration on: it has a
*device*, its answers are *imported*, or it is *simulated*. A *reservation* is the next exchange of
a subject, for its device to answer. A *message* is what a device released for a reservation. Each
subject has a *chain* of digests over its exchanges, which its device has too. The database stores
*commits*; the *checkpoint* is a file outside of it with a line for every commit.

**One request.** ``reserve`` asks the filter about the recorded answers of each subject and reserves
what fits (reserve.py). A device syncs: it says where its chain is and gets its reservation. It
decides on its own record, draws, stores its message, and sends it with the next sync (receive.py).
A message that fits is appended to the chain. The same message again equals the recorded exchange:
nothing is written, and its receipt is the same. Any other message is quarantined, and its subject
suspended.

**Durability.** Requests run as jobs on a *batch* (batch.py), which becomes one commit.
``Engine._make_durable`` writes it: the database commit, then the checkpoint line, each
synchronized. Only then does a receipt, a reservation or a refusal leave the process. One process
writes; threads share commits; other processes read.

**After a restore.** A database that is behind its checkpoint does not open. ``Ledger.recover``
makes every subject unconfirmed (recovery.py). Devices are the replicas: each syncs, sends again
what the ledger has forgotten, and is confirmed. A *ticket* in each message proves that the ledger
once reserved it.

>>> import tempfile
>>> import expost as xp
>>> from expost.device.device import Device
>>> with tempfile.TemporaryDirectory() as folder:
...     smokes, budget = xp.FiniteSet(["no", "yes"]), xp.BayesianFilter(epsilon=1)
...     with xp.Ledger.create(f"{folder}/study.db", smokes, filter=budget) as ledger:
...         _ = ledger.register(["ann"])
...         Device.create(f"{folder}/ann", ledger.policy.to_json(), "ann", '"yes"')
...         device = Device(f"{folder}/ann")
...         outcomes = ledger.reserve(xp.randomized_response(epsilon="0.5"), key="week 1")
...         request = device.sync()
...         while request:
...             (answer,) = ledger.sync([request])
...             request = device.take(answer.to_json())
...         device.close()
...         outcomes[0].outcome, len(ledger.transcript("ann"))
('reserved', 1)
"""

from __future__ import annotations

from expost.ledger.audit import QuarantinedMessage, StudyAudit
from expost.ledger.backend import Backend, Tip
from expost.ledger.checkpoint import CheckpointFile, CheckpointStore
from expost.ledger.errors import Behind, Broken, Damaged, LedgerLocked, LedgerStopped
from expost.ledger.history import Round
from expost.ledger.ledger import Ledger
from expost.ledger.messages import Receipt, Reservation, SyncAnswer
from expost.ledger.policy import StudyPolicy
from expost.ledger.reader import Status
from expost.ledger.recovery import Recovery
from expost.ledger.reserve import Outcome
from expost.ledger.verify import Verification

__all__ = [
    "Backend",
    "Behind",
    "Broken",
    "CheckpointFile",
    "CheckpointStore",
    "Damaged",
    "Ledger",
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
