"""Build the wheel and install it into clean environments: ``make test-wheel``.

With each extra alone and with none, on every Python that the classifiers name; or on those that
are named: ``make test-wheel PYTHONS="3.14 /usr/bin/python3"``. One that uv can neither find nor
download is not tested, and the last line says so.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = tuple(PROJECT["optional-dependencies"])
PYTHONS = tuple(re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])))
UV = os.environ.get("UV") or "uv"

TRANSCRIPT = {
    "version": 1,
    "domain": {"values": ["no", "yes"]},
    "filter": {"kind": "bayesian", "epsilon": "1"},
    "exchanges": [
        {"query": {"kind": "randomized_response", "epsilon": "0.5"}, "response": "yes"},
    ],
}


@dataclass(frozen=True, slots=True)
class Environment:
    """A clean environment with the wheel, and where kernels are kept, anew for every Python."""

    folder: Path
    cache: Path

    def run(self, program: str, *arguments: object, code: int = 0) -> str:
        """What a program of the environment prints; it must end with this code."""
        ours = ("PYTHONPATH", "VIRTUAL_ENV", "NUMBA_DISABLE_JIT")
        result = subprocess.run(
            [self.folder / "bin" / program, *map(str, arguments)],
            env={
                **{name: value for name, value in os.environ.items() if name not in ours},
                "NUMBA_CACHE_DIR": str(self.cache),
            },
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if result.returncode != code:
            sys.exit(f"{program} {arguments} ended with {result.returncode}:\n{result.stdout}")
        return result.stdout


def main(pythons: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], check=True)
        (wheel,) = folder.glob("*.whl")
        tested = [python for python in pythons if works(python, wheel, folder)]
    others = [python for python in pythons if python not in tested]
    print(
        f"{wheel.name} works on Python {', '.join(tested) or '(none)'}"
        + (f"; NOT TESTED, for uv has none: {', '.join(others)}" if others else "")
    )
    sys.exit(0 if tested else 1)


def works(python: str, wheel: Path, folder: Path) -> bool:
    """Whether the wheel was tested with this Python; if it does not work, the program ends."""
    cache = Path(tempfile.mkdtemp(prefix="kernels-", dir=folder))
    for extra in (None, *EXTRAS):
        place = Path(tempfile.mkdtemp(prefix="environment-", dir=folder))
        if subprocess.run([UV, "venv", "--quiet", "--clear", "--python", python, place]).returncode:
            return False
        asked = str(wheel) if extra is None else f"{wheel}[{extra}]"
        subprocess.run([UV, "pip", "install", "--quiet", "--python", place, asked], check=True)
        print(f"Python {python}, {f'extra {extra}' if extra else 'no extra'}", flush=True)
        examine(Environment(place, cache), extra)
    return True


def examine(environment: Environment, extra: str | None) -> None:
    """Run the programs and commands that have to work, and one that has to say what it needs."""
    assert environment.run("expost", "--version") == f"expost {version(environment)}\n"
    programs = ["finite", "box", *([] if extra is None else [extra])]
    environment.run(
        "python", "-P", ROOT / "tests" / "support" / "installation_programs.py", *programs
    )
    told = json.loads(environment.run("expost", "doctor", "--json"))
    assert told["kernels"]["compiled"], told
    available = {name for name, there in told["extras"].items() if all(there.values())}
    assert available == ({extra} if extra else set()), told
    file = environment.folder / "transcript.json"
    file.write_text(json.dumps(TRANSCRIPT))
    assert "realized loss      0.5\n" in environment.run("expost", "loss", file)
    if extra != "plot":
        said = environment.run("expost", "plot", file, "--out", "picture.png", code=2)
        assert said == "expost: a picture needs the extra: pip install 'expost[plot]'\n"


def version(environment: Environment) -> str:
    """The version in the metadata of what is installed."""
    program = "from importlib.metadata import version; print(version('expost'))"
    return environment.run("python", "-P", "-c", program).strip()


if __name__ == "__main__":
    main(sys.argv[1:] or list(PYTHONS))
