"""``expost ledger recover``: after a restored backup."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from expost.cli._options import flag_option
from expost.cli._outputs import Result, check_output, prints_result
from expost.cli.ledger._options import checkpoint_file, ledger_location
from expost.files.kinds import CHECKPOINT
from expost.ledger import Ledger, Recovery

__all__ = ["command"]


@click.command("recover")
@ledger_location
@checkpoint_file
@flag_option(
    "--lost",
    "Continue without the checkpoint or its key. Unsafe: registrations, suspensions and "
    "imports after the backup are forgotten.",
)
@prints_result
def command(location: str, checkpoint: Path | None, lost: bool) -> Result:
    """Make a restored backup usable again.

    If the newer database still exists, restore that instead. Recovery marks every device and
    simulated subject unconfirmed. An unconfirmed subject is not queried until its device has
    synced and sent again what the database has lost. Keep the checkpoint and its key as they are.
    Stop other processes that write to the ledger first.
    """
    check_output(checkpoint, CHECKPOINT)
    recovery = Ledger.recover(location, checkpoint=checkpoint, lost=lost)
    return Result(asdict(recovery), _describe_recovery(recovery))


def _describe_recovery(recovery: Recovery) -> Iterator[tuple[str, str]]:
    lost_commits = recovery.lost_commits
    yield "lost commits", "unknown" if lost_commits is None else f"{lost_commits:,}"
    yield "unconfirmed", f"{recovery.unconfirmed:,}"
    if recovery.unconfirmed:
        yield "", "each subject is confirmed by its device's next sync"
    yield "lost registrations", f"{recovery.lost_registrations:,}"
    if recovery.lost_registrations:
        yield "", "register these subjects again, or wait until their devices sync"
    yield "suspended", f"{len(recovery.suspended):,}"
    for name in recovery.suspended:
        yield "", str(name)
    if recovery.suspended:
        yield "", "permanently: the backup has lost what these subjects revealed"
    yield "lost imports", f"{recovery.lost_imports:,}"
    if recovery.lost_imports:
        yield "", "record these tables again, with the same keys"
