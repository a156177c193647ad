"""``expost completion``: what a shell needs to complete commands, options and file names."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from expost.cli._outputs import Result, prints_result

__all__ = ["command"]

_SHELLS: dict[str, type[ShellComplete]] = {
    shell.name: shell for shell in (BashComplete, ZshComplete, FishComplete)
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@prints_result
@click.pass_context
def command(context: click.Context, shell: str) -> Result:
    """Print a shell completion script.

    It completes commands, options and file names. For bash and zsh put
    eval "$(expost completion bash)" into ~/.bashrc, or the same with zsh into ~/.zshrc. For fish
    save what is printed as ~/.config/fish/completions/expost.fish.
    """
    group = context.find_root().command
    script = _SHELLS[shell](group, {}, "expost", "_EXPOST_COMPLETE").source().strip()
    return Result({"shell": shell, "script": script}, script.splitlines())
