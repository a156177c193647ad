"""``expost ledger sync``: answers to the sync requests of devices."""

from __future__ import annotations

import json
from pathlib import Path

import click

from expost.cli._options import out_option, path
from expost.cli._outputs import Result, check_output, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger, read_lines
from expost.files.durable import save
from expost.files.kinds import SYNC_ANSWERS
from expost.files.regular import LARGEST_TABLE
from expost.ledger import Receipt

__all__ = ["command"]


@click.command("sync")
@ledger
@click.argument("file", type=path, metavar="FILE")
@out_option("FILE", "File for the answers. Default: print them.")
@prints_result
def command(open_: Open, file: Path, out: Path | None) -> Result:
    """Answer the sync requests of devices.

    FILE has one request per line. The answers come one per line, in the same order: send each
    device its answer. A line that is not a request gets a receipt instead. Exits with 1 if anything
    was quarantined. Stop other processes that write to the ledger first.
    """
    check_output(out, SYNC_ANSWERS, file)
    requests = read_lines(file)
    with open_() as study, progress_line() as line:
        line.stage(f"answering {len(requests):,} sync requests")
        answers = study.sync(requests)
    texts = [answer.to_json() for answer in answers]
    if out is not None:
        save(out, lambda: "".join(f"{text}\n" for text in texts), most=LARGEST_TABLE)
    receipts = [
        receipt
        for answer in answers
        for receipt in ([answer] if isinstance(answer, Receipt) else answer.receipts)
    ]
    quarantined = sum(receipt.outcome == "quarantined" for receipt in receipts)
    counts = [("answers", f"{len(answers):,}"), ("quarantined", f"{quarantined:,}")]
    return Result(
        {"answers": [json.loads(text) for text in texts], "quarantined": quarantined},
        texts if out is None else counts,
        exit_code=quarantined > 0,
    )
