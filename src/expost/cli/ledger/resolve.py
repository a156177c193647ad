"""``expost ledger resolve``: what an operator decides about suspended subjects."""

from __future__ import annotations

import click

from expost.cli._options import flag_option
from expost.cli._outputs import Result, prints_result
from expost.cli.ledger._options import Open, SubjectOptions, ledger, some_subjects
from expost.errors import InvalidInput

__all__ = ["command"]


@click.command("resolve")
@ledger
@click.argument("names", nargs=-1, metavar="[NAME]...")
@some_subjects
@flag_option("--suspend", "Suspend subjects whose quarantined messages are held.")
@prints_result
def command(open_: Open, names: tuple[str, ...], options: SubjectOptions, suspend: bool) -> Result:
    """Decide about suspended or held subjects.

    NAME is a subject. Look at the quarantined messages first: expost ledger audit LEDGER --json.
    Without --suspend, the command ends the suspension of the named subjects. They are then
    unconfirmed until their devices sync with chains that extend the ledger's. The losses from their
    messages still count. Stop other processes that write to the ledger first.
    """
    with open_() as study:
        subjects = SubjectOptions((*names, *options.names), options.file).find(study)
        if subjects is None:
            raise InvalidInput("no subjects; give NAME, --subject NAME or --subjects FILE")
        changed = study.resolve(subjects, suspend=suspend)
    action, same = "suspended" if suspend else "resolved", len(subjects) - len(changed)
    lines = [(action, f"{len(changed):,}")]
    if changed and not suspend:
        lines.append(("", "each is confirmed by its device's next sync"))
    if same:
        lines.append(("unchanged", f"{same:,}"))
    return Result({action: changed, "unchanged": same}, lines)
