"""Jobs that take long, each in a process of its own: estimates and the audit.

A job reads the ledger as any other process may, so it holds up no device. A request for a job is
repeated until its result is there; the result says of which commit it is.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from expost._types import PathLike
from expost.collector._estimates import EstimateRequest, estimate
from expost.collector._problems import RequestProblem, unavailable
from expost.errors import ExpostError, InvalidInput
from expost.ledger import Ledger

__all__ = ["Jobs", "Work", "audit", "estimate_work"]

LOG = logging.getLogger("expost.collector")

# Results that are stored, and jobs that may wait.
_STORED, _MOST_WAITING = 100, 20

Report = Callable[[int, int], None]
Work = Callable[[Ledger, Report], Mapping[str, Any]]


@dataclass(slots=True)
class _Job:
    """One computation: of which commit it is, how far it is, and its result."""

    root: str
    #: Tokens that asked for it and have not got its result.
    waiting: set[str] = field(default_factory=set)
    progress: tuple[int, int] = (0, 0)
    result: Mapping[str, Any] | None = None
    error: RequestProblem | None = None
    finished: asyncio.Event = field(default_factory=asyncio.Event)


class Jobs:
    """Runs one job at a time, and stores results by request and root."""

    def __init__(self, database: PathLike, checkpoint: PathLike) -> None:
        self._database, self._checkpoint = database, checkpoint
        self._jobs: dict[object, _Job] = {}
        self._running = asyncio.Semaphore(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._processes: set[BaseProcess] = set()
        self._closed = False

    async def result(
        self, key: object, work: Work, token: str, root: str, wait: float
    ) -> Mapping[str, Any] | tuple[int, int]:
        """Return the result of a job, or its progress if it is not finished in time.

        A finished job counts if nothing was committed since, or if it was started for this token.
        """
        job = self._jobs.get(key)
        if job is None or (job.finished.is_set() and job.root != root and token not in job.waiting):
            job = self._start(key, work, root)
        job.waiting.add(token)
        try:
            await asyncio.wait_for(job.finished.wait(), wait)
        except TimeoutError:
            return job.progress
        job.waiting.discard(token)
        if job.error is not None:
            raise job.error
        assert job.result is not None, "it is finished"
        return job.result

    def _start(self, key: object, work: Work, root: str) -> _Job:
        if sum(not other.finished.is_set() for other in self._jobs.values()) >= _MOST_WAITING:
            raise unavailable("too many jobs are waiting", 10)
        job = _Job(root)
        self._jobs[key] = job
        for old, other in list(self._jobs.items())[:-_STORED]:
            if other.finished.is_set():
                del self._jobs[old]
        task = asyncio.create_task(self._run(job, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return job

    async def _run(self, job: _Job, work: Work) -> None:
        async with self._running:
            try:
                await asyncio.to_thread(self._work, job, work)
            except Exception as error:  # the client of a job must not wait for ever
                LOG.error("a job failed: %s", type(error).__name__)
                job.error = unavailable("the computation failed", 60)
            job.finished.set()

    def _work(self, job: _Job, work: Work) -> None:
        """Run a job in a process, and take in what that sends; called in a thread."""
        if self._closed:
            job.error = unavailable("the collector is stopping", 5)
            return
        context = multiprocessing.get_context("spawn")
        receiver, sender = context.Pipe(duplex=False)
        arguments = (sender, self._database, self._checkpoint, work)
        process = context.Process(target=_work_in_process, args=arguments, daemon=True)
        process.start()
        sender.close()
        self._processes.add(process)
        try:
            while True:
                kind, content = receiver.recv()
                if kind == "progress":
                    job.progress = content
                elif kind == "result":
                    job.result = content
                    return
                else:
                    status = 422 if kind == "invalid" else 503
                    headers = {} if status == 422 else {"Retry-After": "60"}
                    name = "invalid-input" if status == 422 else "unavailable"
                    job.error = RequestProblem(status, name, content, headers=headers)
                    return
        except EOFError:  # it was killed
            job.error = unavailable("the computation was interrupted")
        finally:
            receiver.close()
            process.join()
            self._processes.discard(process)

    def close(self) -> None:
        """Stop the running job."""
        self._closed = True
        for process in list(self._processes):
            process.kill()


def _work_in_process(
    sender: Connection, database: PathLike, checkpoint: PathLike, work: Work
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the collector ends this process

    def report(done: int, total: int) -> None:
        sender.send(("progress", (done, total)))

    try:
        with Ledger(database, checkpoint=checkpoint) as ledger:
            tip = ledger.tip
            result = {"commit": tip.commit_number, "root": tip.root.hex(), **work(ledger, report)}
        sender.send(("result", result))
    except InvalidInput as error:
        sender.send(("invalid", str(error)))
    except ExpostError as error:
        sender.send(("failed", str(error)))
    except Exception as error:  # a traceback could show a name in the log
        sender.send(("failed", f"error of expost: {type(error).__name__}; please report it"))


def estimate_work(request: EstimateRequest) -> Work:
    """Return the job of an estimate."""
    return partial(_estimate, request)


def _estimate(request: EstimateRequest, ledger: Ledger, report: Report) -> Mapping[str, Any]:
    return estimate(ledger.answers(), request, report)


def audit(ledger: Ledger, report: Report) -> Mapping[str, Any]:
    """Verify and audit a ledger."""
    verification = ledger.verify(report)
    study = ledger.audit()
    return {
        "good": verification.good and study.good,
        "problems": list(verification.problems),
        "subjects": verification.subjects,
        "exchanges": verification.exchanges,
        "broken": [] if study.audit is None else study.audit.broken_subjects(),
        "suspended": list(study.suspended),
        "unconfirmed": list(study.unconfirmed),
        "withdrawn": sorted(ledger.withdrawn, key=str),
        "reserved": list(study.reserved),
        "quarantined": [
            {"subject": entry.subject, "reason": entry.reason, "held": entry.held}
            for entry in study.quarantined
        ],
        "extras": len(study.extras),
        "two_outcomes": [list(pair) for pair in study.two_outcomes],
        "lost_imports": study.lost_imports,
        "marks": list(study.marks),
    }
