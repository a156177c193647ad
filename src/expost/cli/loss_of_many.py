"""``expost loss --many``: the realized losses of many subjects beside basic composition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from expost.answers import Answers
from expost.audit.losses import Losses, realized_losses
from expost.audit.tables import load_answers, save_losses
from expost.cli.progress import progress_line
from expost.cli.show import show_json, show_lines
from expost.errors import InvalidInput, at
from expost.files.regular import check_apart
from expost.files.tables import table_format
from expost.report.words import shown
from expost.solver import Effort

__all__ = ["show_losses"]

# Of one response over one value, for each megabyte: a few seconds.
_MOST_PASSED = 400_000_000


def show_losses(
    data: Path,
    queries: Path,
    out: Path | None,
    picture: Path | None,
    effort: Effort,
    *,
    as_json: bool,
) -> None:
    """Work out, save, draw and show the losses of all subjects."""
    for written in (out, picture):
        if written is not None:
            check_apart(written, data, queries)
    if out is not None:
        with at(str(out), ": "):
            table_format(out)  # before the work, not after it
    answers = load_answers(data, queries)
    _check_work(answers, data, queries)
    with progress_line() as line:
        losses = realized_losses(
            answers,
            gap=effort.gap,
            nodes=effort.nodes,
            progress=lambda done, total: line.count(done, total, "subjects"),
        )
    if out is not None:
        save_losses(losses, out)
    if picture is not None:
        _draw(losses, picture)
    if as_json:
        show_json(losses.tree() if out is None else losses.summary())
        return
    exchanges = int(losses.exchanges.sum())
    lines = [
        ("subjects", f"{len(losses):,}"),
        ("exchanges", f"{exchanges:,}"),
        ("mean loss", shown(losses.upper.mean())),
        ("median loss", shown(np.median(losses.upper))),
        ("largest loss", shown(losses.upper.max())),
        ("basic composition", _range(losses.basic)),
    ]
    infinite = int(np.isinf(losses.upper).sum())
    if infinite:
        lines.append(("infinite", f"{infinite:,} subjects"))
    wide = int((losses.upper > losses.lower + effort.gap).sum())
    if wide:
        lines.append(("wider than the gap", f"{wide:,} subjects; more nodes may narrow that"))
    show_lines(lines)


def _check_work(answers: Answers, *files: Path) -> None:
    """Refuse what small files must not ask for: a pass over all values for each response."""
    megabytes = max(1.0, sum(file.stat().st_size for file in files) / 1e6)
    values, responses = len(answers.domain.values or ()), len(answers.codes)
    if values * responses > _MOST_PASSED * megabytes:
        most = int(_MOST_PASSED * megabytes)
        reason = f"{responses:,} responses over {values:,} values are too much work"
        reason += f"; files of this size may ask for {most:,} in all, xp.realized_losses for more"
        raise InvalidInput(reason, str(files[0]))


def _range(numbers: Any) -> str:
    least, most = shown(numbers.min()), shown(numbers.max())
    return least if least == most else f"{least} to {most}"


def _draw(losses: Losses, picture: Path) -> None:
    try:
        from expost.report.figures import losses_figure, save

        save(losses_figure(losses), picture)
    except ModuleNotFoundError:
        raise InvalidInput("a picture needs an extra: pip install 'expost[plot]'") from None
