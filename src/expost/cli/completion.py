"""``expost completion``: what a shell needs to complete commands, options and file names."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

from expost.cli._options import as_json
from expost.cli._outputs import show_json

__all__ = ["command"]

_SHELLS: dict[str, type[ShellComplete]] = {
    shell.name: shell for shell in (BashComplete, ZshComplete, FishComplete)
}


@click.command("completion")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@as_json
@click.pass_context
def command(context: click.Context, shell: str, as_json: bool) -> None:
    """Print a shell completion script.

    It completes commands, options and file names. For bash and zsh put
    eval "$(expost completion bash)" into ~/.bashrc, or the same with zsh into ~/.zshrc. For fish
    save what is printed as ~/.config/fish/completions/expost.fish.
    """
    group = context.find_root().command
    script = _SHELLS[shell](group, {}, "expost", "_EXPOST_COMPLETE").source().strip()
    if as_json:
        show_json({"shell": shell, "script": script})
    else:
        click.echo(script)
