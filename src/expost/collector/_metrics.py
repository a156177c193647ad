"""Counters in the text format of Prometheus; no label has the name of a subject."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class DurationHistogram:
    """Counts of durations by upper bounds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_SECONDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*_SECONDS, "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._sum:.6f}"
        yield f"{name}_count {total}"


class Metrics:
    """What the collector has done since it started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: Counter[tuple[str, str, int]] = Counter()
        self._messages: Counter[str] = Counter()
        self.commits = DurationHistogram()

    def count_answer(self, method: str, path: str, status: int) -> None:
        self._answers[method, path, status] += 1

    def count_messages(self, outcomes: Counter[str]) -> None:
        with self._lock:
            self._messages.update(outcomes)

    def to_text(self, gauges: dict[str, float]) -> str:
        """Return all metrics; ``gauges`` has further values by name."""
        lines = [
            "# HELP expost_answers_total Answers by endpoint and status.",
            "# TYPE expost_answers_total counter",
        ]
        for (method, path, status), count in sorted(self._answers.items()):
            labels = f'method="{method}",path="{path}",status="{status}"'
            lines.append(f"expost_answers_total{{{labels}}} {count}")
        lines += [
            "# HELP expost_messages_total Messages of devices by outcome.",
            "# TYPE expost_messages_total counter",
        ]
        with self._lock:
            for outcome, count in sorted(self._messages.items()):
                lines.append(f'expost_messages_total{{outcome="{outcome}"}} {count}')
        lines += [
            "# HELP expost_commit_seconds Duration of a commit, until it is durable.",
            "# TYPE expost_commit_seconds histogram",
            *self.commits.lines("expost_commit_seconds"),
        ]
        for name, gauge in gauges.items():
            lines += [f"# TYPE expost_{name} gauge", f"expost_{name} {gauge:g}"]
        return "\n".join(lines) + "\n"
