"""The collector: a study over HTTP. Devices answer, analysts ask, auditors check.

**The pieces.** A *service* (_service.py) has two views of one ledger: a writer, which has claimed
it, and a reader. The *endpoints* are a table (_devices.py, _analysts.py, _operators.py), from which
the routes (_app.py), the permissions, the page docs/reference/collector.md and the OpenAPI document
(_openapi.py) follow. A *token* (_tokens.py) has scopes. The *state* (_state.py) is everything that
the collector knows besides the ledger: tokens, invitations, bindings of devices, groups and keys of
rounds.

**A sync, end to end.** The application finds the token, checks its scope and its rate, and reads
the body. The endpoint refuses a request about another subject. The *queue* (_queue.py) hands all
waiting requests to the ledger as one commit, in a thread. If the answer hands out a reservation,
the state records first that this device speaks for its subject from now on. Then the answer leaves.

**Where the state is.** In a *journal* (_journal.py) next to the checkpoint, for the same reason as
the checkpoint: it must not be restored with the database. Then no restored backup makes a used code
new or a revoked token valid, and the checkpoint needs no lines about them. A withdrawal is in the
ledger instead, because every program that opens it must obey; the checkpoint lists it.

**Analysts** ask about everybody or about groups (_groups.py) that are so large, and differ by so
many, that no sum or difference of counts is about a few people. A second journal records who asked
what, before it is answered.

**Jobs** (_jobs.py) are estimates and audits. Each runs in a process that reads the ledger, so it
holds up no device. Its request is repeated until the result is there.

**A stop.** SIGTERM closes the queue: the running commit finishes, and everything else is refused
with 503. If the ledger stops, because a write failed, the server ends too: only opening the ledger
again shows what was recorded.

**The client** (client.py) is for analysts, registrars, auditors and administrators. It needs the
standard library only, so importing this package imports no server; devices use device.py.
"""

from __future__ import annotations

from expost.collector.client import (
    Collector,
    CollectorAudit,
    CollectorEstimates,
    CollectorOffline,
    CollectorRefusal,
    CollectorStatus,
    DryRunCounts,
    RoundProgress,
)

__all__ = [
    "Collector",
    "CollectorAudit",
    "CollectorEstimates",
    "CollectorOffline",
    "CollectorRefusal",
    "CollectorStatus",
    "DryRunCounts",
    "RoundProgress",
]
