"""The kernels as machine code: compiled once, stored on disk, and loaded without the compiler.

The code is stored in a directory that is named by a digest of all kernel sources, so that any
edit compiles it again. It calls nothing but functions of the C library, and depends neither on
Python nor on numba; loading it takes llvmlite alone. Without both, finite domains still work.
"""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, TypeVar, cast, get_type_hints

from expost.errors import InvalidInput
from expost.solver.kernels.layout import NodePool

__all__ = [
    "JitKernel",
    "MachineCode",
    "cache_directories",
    "compiled",
    "find_cached",
    "jit_disabled",
    "load_or_build",
    "machine_code",
]

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
_SUM = hashlib.sha256().digest_size

_WORD, _RECORD, _POOL = ([ctypes.c_int64] * count for count in (1, 2, 3))
#: What C passes for an argument; for any other type, the addresses of a block and its layout.
_C_TYPES: dict[Any, list[Any]] = {
    int: _WORD, bool: _WORD, float: [ctypes.c_double], NodePool: _POOL,
}  # fmt: skip


class JitKernel(partial[Any]):
    """A kernel: plain Python when it is called, and a function that numba can compile."""

    @property
    def symbol(self) -> str:
        """The name of the kernel in the machine code, if it is an entry."""
        return f"expost_{self.func.__name__}"

    @property
    def signature(self) -> tuple[Any, list[Any]]:
        """The type of its result, and those of its parameters."""
        *parameters, result = get_type_hints(self.func).values()
        return result, parameters

    @property
    def c_signature(self) -> tuple[Any, list[Any]]:
        """The signature of an entry in C, where None is no result."""
        result, parameters = self.signature
        (c_result,) = _C_TYPES.get(result, [None])
        return c_result, [word for kind in parameters for word in _C_TYPES.get(kind, _RECORD)]

    @cached_property
    def jitted(self) -> Any:
        """The function that numba compiles.

        It does not count references, which would cost a third of the time: the caller owns all
        arrays.
        """
        from numba import njit

        return njit(nogil=True, error_model="numpy", _nrt=False)(self.func)

    @property
    def _numba_type_(self) -> Any:
        return self.jitted._numba_type_


def compiled(function: F) -> F:
    """Mark a function as a kernel."""
    return cast("F", JitKernel(function))


class MachineCode:
    """Machine code in memory."""

    def __init__(self, image: bytes) -> None:
        import llvmlite.binding as llvm

        machine = target_machine()
        module = llvm.parse_assembly("")
        module.triple = machine.triple
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(image))
        self._engine.finalize_object()
        self._functions: dict[JitKernel, Callable[..., Any]] = {}

    def function(self, kernel: JitKernel) -> Callable[..., Any]:
        """Return the compiled function of an entry."""
        if kernel not in self._functions:
            result, parameters = kernel.c_signature
            kind = ctypes.CFUNCTYPE(result, *parameters)  # without the interpreter's lock
            address = self._engine.get_function_address(kernel.symbol)
            self._functions[kernel] = kind(address)
        return self._functions[kernel]


def target_machine() -> Any:
    """Describe this computer to llvm."""
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
def machine_code() -> MachineCode | None:
    """Load or compile the code; return None if NUMBA_DISABLE_JIT is set."""
    if jit_disabled():
        return None
    try:
        return MachineCode(load_or_build(list(cache_directories()), _import_compiler))
    except ImportError as error:
        raise InvalidInput(_import_error_text(error)) from None


def jit_disabled() -> bool:
    """Return whether kernels run as plain Python, because NUMBA_DISABLE_JIT is set."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def _import_error_text(error: ImportError) -> str:
    why = " ".join(str(error).split())
    return (
        f"a search over a box needs numba, which cannot be imported ({why}): pip install --upgrade "
        "numba llvmlite, or set NUMBA_DISABLE_JIT=1 to search slowly without it"
    )


def load_or_build(directories: list[Path], compiler: Callable[[], Callable[[], bytes]]) -> bytes:
    """Read the code from the first directory that has it; otherwise build and store it."""
    cached = find_cached(directories)
    if cached is not None:
        return cached[1]
    build = compiler()  # where that fails, no message announces a compilation
    message = "compiling the optimizer, once; this takes about a minute"
    logging.getLogger("expost").warning(message)
    image = build()
    if not any(_try_to_write(directory / _file_name(), image) for directory in directories):
        logging.getLogger("expost").warning(
            "the compiled optimizer cannot be saved in %s, so the next process compiles it again; "
            "set NUMBA_CACHE_DIR to a writable directory",
            " or ".join(str(directory.parent) for directory in directories),
        )
    return image


def find_cached(directories: Iterable[Path]) -> tuple[Path, bytes] | None:
    """Find the code for this computer in the first directory that has an intact file."""
    name = _file_name()
    for directory in directories:
        image = _read_intact(directory / name)
        if image is not None:
            return directory / name, image
    return None


def cache_directories() -> Iterator[Path]:
    """Yield where the code may be: next to its sources, or in the user's cache directory."""
    digest = hashlib.sha256()
    for source in sorted(_HERE.glob("*.py")):
        digest.update(source.read_bytes())
    directory = f"kernels-{digest.hexdigest()[:16]}"
    configured = os.environ.get("NUMBA_CACHE_DIR")
    if configured:
        yield Path(configured) / directory
        return
    yield _HERE / "__pycache__" / directory
    try:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    except RuntimeError:  # the user has no home directory, as in some containers
        return
    yield caches / "expost" / directory


def _file_name() -> str:
    """Name the file by the processor and the versions of numba and llvm."""
    from importlib.metadata import distributions

    import llvmlite
    import llvmlite.binding as llvm

    target = (
        # numba need not be imported to know its version; without numba nothing is compiled.
        [numba.version for numba in distributions(name="numba")][:1],
        llvmlite.__version__,
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    return f"{hashlib.sha256(repr(target).encode()).hexdigest()[:16]}.o"


def _read_intact(path: Path) -> bytes | None:
    """Read a file; return None unless its checksum is right."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    image = content[_SUM:]
    return image if hashlib.sha256(image).digest() == content[:_SUM] else None


def _try_to_write(path: Path, image: bytes) -> bool:
    """Write a file with its checksum, atomically; return whether that was possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(hashlib.sha256(image).digest() + image)
        draft.replace(path)
    except OSError:
        return False
    if path.parent.parent == _HERE / "__pycache__":
        # In other directories there may be code of other installations.
        for old in path.parent.parent.glob("kernels-*"):
            if old != path.parent:
                shutil.rmtree(old, ignore_errors=True)
    return True


def _import_compiler() -> Callable[[], bytes]:
    from expost.solver.kernels.machine_code import build

    return build
