"""``expost completion``: print a shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from expost.cli._outputs import Result, prints_result

__all__ = ["command"]

_SHELLS: dict[str, type[ShellComplete]] = {
    shell.name: shell for shell in (BashComplete, ZshComplete, FishComplete)
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)), metavar="SHELL")
@prints_result
@click.pass_context
def command(context: click.Context, shell: str) -> Result:
    """Print a shell completion script.

    SHELL is bash, zsh or fish. The script completes commands, options and file names. For bash, put
    eval "$(expost completion bash)" into ~/.bashrc. For zsh, put the same with zsh into ~/.zshrc.
    For fish, save the output as ~/.config/fish/completions/expost.fish.
    """
    group = context.find_root().command
    script = _SHELLS[shell](group, {}, "expost", "_EXPOST_COMPLETE").source().strip()
    return Result({"shell": shell, "script": script}, script.splitlines())
