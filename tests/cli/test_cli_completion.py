"""``expost completion``: the script is tried in a real shell."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

# What bash does when somebody presses the tab key after these words.
TABS = """
eval "$(expost completion bash)"
press() {
  COMPREPLY=(); COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _expost_completion expost
  echo "${COMPREPLY[@]}"
}
press expost com
press expost query rand
press expost ledger re
"""


def test_bash_completes_commands_and_what_they_take(tmp_path: Path) -> None:
    program = tmp_path / "expost"
    call = "from expost.cli.main import main; main()"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{call}' \"$@\"\n")
    program.chmod(0o755)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "--norc", "-c", TABS],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "compare completion",
        "randomized_response",
        "register reserve receive record resolve report recover",
    ]


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_a_script_names_the_function_that_completes(run: Run, name: str) -> None:
    code, out, err = run("completion", name)
    assert (code, err) == (0, "")
    assert f"_EXPOST_COMPLETE={name}_complete" in out
    tree = json.loads(run("completion", name, "--json")[1])
    assert tree == {"shell": name, "script": out.strip()}
