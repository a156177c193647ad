"""Groups of commands that are imported when they are called, not when they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """Commands by their names, with what ``--help`` says about each, in that order.

    A command is a module of the same name in ``package``, so that ``--help`` is instant.
    """

    def __init__(self, *arguments: Any, package: str, listed: Mapping[str, str], **options: Any):
        super().__init__(*arguments, **options)
        self._package = package
        self.listed = listed

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.listed)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.listed:
            return None
        module = import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.listed and not args[0].startswith("-"):
            from expost.errors import did_you_mean

            raise click.UsageError(
                f"there is no command {args[0]!r}{did_you_mean(args[0], self.listed)}"
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.listed.items()))
