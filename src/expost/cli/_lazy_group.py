"""Groups of commands that are imported when they are called, not when they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """Commands by task, with the summary of each that ``--help`` prints, in that order.

    A command is a module of the same name in ``package``, so that ``--help`` is instant.
    """

    def __init__(
        self, *arguments: Any, package: str, tasks: Mapping[str, Mapping[str, str]], **options: Any
    ):
        super().__init__(*arguments, **options)
        self._package = package
        self._tasks = tasks
        self.summaries = {
            name: summary for commands in tasks.values() for name, summary in commands.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        module_name = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        command: click.Command = import_module(f"{self._package}.{module_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.summaries and not args[0].startswith("-"):
            from expost.errors import did_you_mean

            raise click.UsageError(
                f"no such command {args[0]!r}{did_you_mean(args[0], self.summaries)}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, self.summaries))
        for task, commands in self._tasks.items():
            with formatter.section(task):
                formatter.write_dl(
                    [(name.ljust(widest), summary) for name, summary in commands.items()]
                )
