"""``expost ledger resolve``: what an operator decides about suspended subjects."""

from __future__ import annotations

import click

from expost.cli._options import as_json
from expost.cli._outputs import show_json, show_lines
from expost.cli.ledger._options import Open, SubjectOptions, ledger, some_subjects
from expost.errors import InvalidInput

__all__ = ["command"]


@click.command("resolve")
@ledger
@click.argument("names", nargs=-1, metavar="[NAME]...")
@some_subjects
@click.option(
    "--suspend", is_flag=True, help="Suspend subjects whose quarantined messages are held."
)
@as_json
def command(
    open_: Open, names: tuple[str, ...], options: SubjectOptions, suspend: bool, as_json: bool
) -> None:
    """Decide about suspended or held subjects.

    Look at the quarantined messages first: expost ledger audit LEDGER --json. Without --suspend,
    this ends the suspension of the named subjects. A resolved subject is unconfirmed until its
    device syncs with a chain that extends the ledger's; what its messages revealed still counts.
    Stop other processes that write to the ledger first.
    """
    with open_() as study:
        subjects = SubjectOptions((*names, *options.names), options.file).find(study)
        if subjects is None:
            raise InvalidInput("no subjects; give NAME, --subject NAME or --subjects FILE")
        changed = study.resolve(subjects, suspend=suspend)
    action, same = "suspended" if suspend else "resolved", len(subjects) - len(changed)
    if as_json:
        show_json({action: changed, "unchanged": same})
        return
    lines = [(action, f"{len(changed):,}")]
    if changed and not suspend:
        lines.append(("", "each is confirmed by its device's next sync"))
    show_lines([*lines, *([("unchanged", f"{same:,}")] if same else [])])
