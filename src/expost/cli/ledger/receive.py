"""``expost ledger receive``: messages from devices, whatever they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from expost.cli._options import flag_option, out_option, path
from expost.cli._outputs import Result, check_output, prints_result, progress_line
from expost.cli.ledger._options import Open, ledger, read_lines
from expost.files.durable import save
from expost.files.kinds import RECEIPTS
from expost.files.regular import LARGEST_TABLE
from expost.ledger import Receipt

__all__ = ["command"]

_OUTCOMES = ("recorded", "declined", "incomplete", "quarantined")


@click.command("receive")
@ledger
@click.argument("file", type=path, metavar="FILE")
@flag_option("--dry-run", "Only show what would happen to each message.")
@out_option("FILE", "File for the receipts (JSON Lines).")
@prints_result
def command(open_: Open, file: Path, dry_run: bool, out: Path | None) -> Result:
    """Record messages from devices.

    FILE has one message per line. A message that does not fit is quarantined, and its subject is
    suspended. If this would suspend more than 1 % of at least 100 subjects, none of them is
    suspended until you decide: see expost ledger resolve. Exits with 1 if anything was quarantined.
    Stop other processes that write to the ledger first.
    """
    check_output(out, RECEIPTS, file)
    messages = read_lines(file)
    with open_() as study, progress_line() as progress:
        progress.stage(f"receiving {len(messages):,} messages")
        # One call: the share of messages that do not fit counts over all of them.
        receipts = study.receive(messages, dry_run=dry_run)
    if out is not None:
        text = "".join(f"{receipt.to_json()}\n" for receipt in receipts)
        save(out, lambda: text, most=LARGEST_TABLE)
    counts = Counter(receipt.outcome for receipt in receipts)
    trees = [receipt.tree() for receipt in receipts]
    return Result(
        {**{name: counts[name] for name in _OUTCOMES}, "receipts": trees},
        _describe_receipts(receipts, counts, dry_run),
        exit_code=counts["quarantined"] > 0,
    )


def _describe_receipts(
    receipts: Sequence[Receipt], counts: Counter[str], dry_run: bool
) -> Iterator[tuple[str, str]]:
    if dry_run:
        yield "dry run", "nothing was recorded; this is what would happen"
    for name in _OUTCOMES:
        if name == "recorded" or counts[name]:
            yield name, f"{counts[name]:,}"
            reasons = Counter(receipt.reason for receipt in receipts if receipt.outcome == name)
            for reason, count in reasons.most_common():
                if reason:
                    yield "", f"{count:,}: {reason}"
    held = len({receipt.subject for receipt in receipts if receipt.held})
    if held:
        subject_text = "subject is" if held == 1 else "subjects are"
        yield (
            "held",
            f"{held:,} {subject_text} not suspended: an operator has to look at the messages",
        )
        yield "", "then run: expost ledger resolve LEDGER --suspend --subjects FILE"
