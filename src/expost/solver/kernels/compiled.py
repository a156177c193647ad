"""The kernels as machine code: compiled once, kept on disk, and loaded without the compiler.

The code is kept in a directory that is named by a digest of all kernel sources, so that an edit
anywhere makes it anew. It calls nothing but functions of the C library, and depends neither on
Python nor on numba; loading it takes llvmlite alone. Without both, finite domains still work.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast

from expost.errors import InvalidInput

__all__ = ["Code", "Kernel", "compiled", "disabled", "kept", "load", "machine_code", "places"]

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_SUM = hashlib.sha256().digest_size
_REAL, _WHOLE = ctypes.c_double, ctypes.c_int64

ENTRIES: Mapping[str, tuple[Any, ...]] = {
    "finish": (None, *[_WHOLE] * 2),
    "pursue": (_WHOLE, *[_WHOLE] * 14, *[_REAL] * 2),
    "best_corner": (_REAL, *[_WHOLE] * 4),
    "climb": (None, *[_WHOLE] * 4, _REAL),
}
"""What the code offers: what each function returns, and what it takes. Addresses are integers."""


class Kernel(partial[Any]):
    """A kernel. Called, it is plain Python; to numba it is a function that can be compiled."""

    @cached_property
    def jitted(self) -> Any:
        """As numba knows it.

        Without counts of references, which cost a third of the time: arrays belong to the caller.
        """
        from numba import njit

        return njit(nogil=True, error_model="numpy", _nrt=False)(self.func)

    @property
    def _numba_type_(self) -> Any:
        return self.jitted._numba_type_


def compiled(function: F) -> F:
    """Mark a function as a kernel."""
    return cast("F", Kernel(function))


class Code:
    """Machine code in memory."""

    def __init__(self, image: bytes) -> None:
        import llvmlite.binding as llvm

        machine = target_machine()
        module = llvm.parse_assembly("")
        module.triple = machine.triple
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(image))
        self._engine.finalize_object()
        for name, (result, *given) in ENTRIES.items():
            kind = ctypes.CFUNCTYPE(result, *given)  # without the interpreter's lock
            setattr(self, name, kind(self._engine.get_function_address(f"expost_{name}")))

    finish: Callable[..., None]
    pursue: Callable[..., int]
    best_corner: Callable[..., float]
    climb: Callable[..., None]


def target_machine() -> Any:
    """This computer, as llvm knows it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        codemodel="jitdefault",
        jit=True,
    )


@cache
def machine_code() -> Code | None:
    """The code, from the disk or compiled; None if NUMBA_DISABLE_JIT says so."""
    if disabled():
        return None
    try:
        return Code(load(list(places()), _compiler))
    except ImportError as error:
        raise InvalidInput(_missing(error)) from None


def disabled() -> bool:
    """Whether kernels run as plain Python, because NUMBA_DISABLE_JIT says so."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _missing(error: ImportError) -> str:
    why = " ".join(str(error).split())
    return (
        f"a search over a box needs numba, which cannot be imported ({why}): pip install --upgrade "
        "numba llvmlite, or set NUMBA_DISABLE_JIT=1 to search slowly without it"
    )


def load(directories: list[Path], compiler: Callable[[], Callable[[], bytes]]) -> bytes:
    """The code from the first of some directories that has it; else built, and put into one."""
    found = kept(directories)
    if found is not None:
        return found[1]
    build = compiler()  # if there is none, nothing is said of compiling
    message = "compiling the optimizer, once; this takes about a minute"
    logging.getLogger("expost").warning(message)
    image = build()
    if not any(_write(directory / _name(), image) for directory in directories):
        logging.getLogger("expost").warning(
            "the compiled optimizer cannot be saved in %s, so the next process compiles it again; "
            "set NUMBA_CACHE_DIR to a writable directory",
            " or ".join(str(directory.parent) for directory in directories),
        )
    return image


def kept(directories: Iterable[Path]) -> tuple[Path, bytes] | None:
    """Where the code for this computer is, in the first of some directories that has it whole."""
    name = _name()
    for directory in directories:
        image = _read(directory / name)
        if image is not None:
            return directory / name, image
    return None


def places() -> Iterator[Path]:
    """Where the code may be: beside its sources, or where the user keeps caches."""
    digest = hashlib.sha256()
    for source in sorted(_HERE.glob("*.py")):
        digest.update(source.read_bytes())
    directory = f"kernels-{digest.hexdigest()[:16]}"
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        yield Path(chosen) / directory
        return
    yield _HERE / "__pycache__" / directory
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:  # the user has no home directory, as in some containers
        return
    yield caches / "expost" / directory


def _name() -> str:
    """Code is made for a processor, by a version of numba and one of llvm."""
    from importlib.metadata import distributions

    import llvmlite
    import llvmlite.binding as llvm

    made_for = (
        # Which need not be imported for that; where it is missing, nothing is made.
        [numba.version for numba in distributions(name="numba")][:1],
        llvmlite.__version__,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return f"{hashlib.sha256(repr(made_for).encode()).hexdigest()[:16]}.o"


def _read(path: Path) -> bytes | None:
    """What was written there, if it was written whole."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    image = data[_SUM:]
    return image if hashlib.sha256(image).digest() == data[:_SUM] else None


def _write(path: Path, image: bytes) -> bool:
    """Whether it could be written, whole or not at all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(hashlib.sha256(image).digest() + image)
        draft.replace(path)
    except OSError:
        return False
    if path.parent.parent == _HERE / "__pycache__":
        # Elsewhere other installations may keep theirs.
        for old in path.parent.parent.glob("kernels-*"):
            if old != path.parent:
                shutil.rmtree(old, ignore_errors=True)
    return True


def _compiler() -> Callable[[], bytes]:
    from expost.solver.kernels.machine_code import build

    return build
