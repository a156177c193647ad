"""A line chart in the terminal: one column per step or a few, one row per level."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

__all__ = ["chart"]


def chart(
    series: Sequence[tuple[Sequence[float], str, str]], limit: float, *, width: int, height: int
) -> Text:
    """Draw series (values, mark, style) from 0 to a limit, which is a dashed line at the top."""
    length = max(len(values) for values, _, _ in series)
    width = min(width, length)
    cells = [[(" ", "")] * width for _ in range(height + 1)]
    cells[height] = [("╌", "dim")] * width
    for values, mark, style in series:
        for column in range(width):
            index = column * (length - 1) // max(1, width - 1)
            if index < len(values):
                row = min(height, max(0, round(values[index] / limit * height)))
                cells[row][column] = (mark, style)
    text = Text()
    for row in range(height, -1, -1):
        label = f"{limit * row / height:5.2f}" if row % 3 == 0 else ""
        text.append(f"{label:>5} │", style="dim")
        for mark, style in cells[row]:
            text.append(mark, style=style)
        text.append("\n")
    text.append(" " * 6 + "└" + "─" * width + "\n", style="dim")
    text.append(" " * 7 + f"0{length - 1:>{width - 1}} responses", style="dim")
    return text
