"""``expost ledger sync``: answers to the sync requests of devices."""

from __future__ import annotations

import json
from pathlib import Path

import click

from expost.cli._options import as_json, out_option, path
from expost.cli._outputs import check_output, fail_if, progress_line, show_json, show_lines
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
@as_json
def command(open_: Open, file: Path, out: Path | None, as_json: bool) -> None:
    """Answer the sync requests of devices.

    FILE has a request on each line. Send each device its answer: they come one per line, in the
    same order. A line that is not a request gets a receipt instead. Exits with 1 if anything was
    quarantined. Stop other processes that write to the ledger first.
    """
    if out is not None:
        check_output(out, SYNC_ANSWERS, file)
    requests = read_lines(file)
    with open_() as study, progress_line() as line:
        line.stage(f"answering {len(requests):,} sync requests")
        answers = study.sync(requests)
    text = "".join(f"{answer.to_json()}\n" for answer in answers)
    if out is not None:
        save(out, lambda: text, most=LARGEST_TABLE)
    receipts = [
        receipt
        for answer in answers
        for receipt in ([answer] if isinstance(answer, Receipt) else answer.receipts)
    ]
    quarantined = sum(receipt.outcome == "quarantined" for receipt in receipts)
    if as_json:
        trees = [json.loads(answer_text) for answer_text in text.splitlines()]
        show_json({"answers": trees, "quarantined": quarantined})
    elif out is None:
        click.echo(text, nl=False)
    else:
        show_lines([("answers", f"{len(answers):,}"), ("quarantined", f"{quarantined:,}")])
    fail_if(quarantined)
