"""Longer tests of the collector: ``make collector``.

fuzz        100,000 bodies that no endpoint can use
schema      schemathesis: no answer that the OpenAPI document does not have
soak        syncs for ten minutes: flat memory, no error
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from contextlib import closing
from pathlib import Path

from support.collectors import Study, StudySite, send_fuzzed_bodies

THREADS = 8


def fuzz(folder: Path, *, count: int) -> None:
    """Send many unusable bodies."""
    with closing(Study(folder)) as shared:
        for seed in range(count // 1000):
            send_fuzzed_bodies(shared, 1000, seed)
    print(f"{count:,} bodies: one problem each, nobody suspended, nothing recorded")


def schema(folder: Path, *, program: str) -> None:
    """Compare all answers with the OpenAPI document."""
    with closing(Study(folder)) as shared:
        scopes = [scope for scope in shared.tokens if scope != "device"]
        token = shared.collector.token(*scopes)
        checked = ("not_a_server_error", "status_code_conformance", "content_type_conformance",
                   "response_schema_conformance", "unsupported_method")  # fmt: skip
        address = f"http://127.0.0.1:{shared.collector.port}/openapi.json"
        # What ends the study or this token would end the test.
        subprocess.run(
            [str(Path(program).resolve()), "run", address, "-H", f"Authorization: Bearer {token}",
             "--checks", ",".join(checked), "--max-examples", "100", "--request-timeout", "30",
             "--exclude-path", "/v1/end", "--exclude-path", "/v1/tokens/{id}"],
            check=True, cwd=folder,
        )  # fmt: skip
        assert " ERROR " not in shared.collector.log.read_text("utf-8")


def soak(folder: Path, *, seconds: float) -> None:
    """Sync without end, and watch the memory of the server."""
    names = [f"subject {number}" for number in range(200)]
    with closing(StudySite(str(folder / "study.db"), folder, names, budget=4)) as site:
        sizes, end, answered = [], time.monotonic() + seconds, 0
        while time.monotonic() < end:
            answered += site.fleet.sync(threads=THREADS)
            site.collector.succeed("GET", "/v1/status", site.analyst)
            sizes.append(site.collector.memory())
        third = len(sizes) // 3
        growth = max(sizes[-third:]) / max(sizes[third:-third]) - 1
        print(f"{answered:,} requests, {max(sizes) >> 20} MiB, growth {growth:.1%} in a third")
        assert growth < 0.05
        assert site.collector.stop() == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=["fuzz", "schema", "soak"])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--schemathesis", default="schemathesis", help="the program")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        match options.mode:
            case "fuzz":
                fuzz(folder, count=options.count)
            case "schema":
                schema(folder, program=options.schemathesis)
            case _:
                soak(folder, seconds=options.seconds)
    print(f"{options.mode}: {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
