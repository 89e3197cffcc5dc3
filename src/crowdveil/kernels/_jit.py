"""The one place for compiler options of kernels.

No `fastmath`, so that the same data gives the same bytes; no `prange`, so that a server or a cluster may fork or
call from several threads; `nogil`, so that threads over time steps or blocks run side by side.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _writable_cache() -> None:
    """Give numba a place for compiled kernels where neither the package nor the home folder can be written.

    What lies there is run as it is, so the folder must belong to this user alone: one with a name that others can guess is
    taken only if it does and is closed to others.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    package = Path(__file__).parent
    if not os.access(package, os.W_OK) and not os.access(Path.home(), os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = str(_private_folder(Path(tempfile.gettempdir())))


def _private_folder(temporary: Path) -> Path:
    """Return a folder for compiled kernels: the one of this user if it is safe, otherwise a new one."""
    me = os.getuid() if hasattr(os, "getuid") else 0  # Windows has a temporary folder for each user
    folder = temporary / f"crowdveil-kernels-{me}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == me and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix="crowdveil-kernels-", dir=temporary))


_writable_cache()

import llvmlite.binding  # noqa: E402
import llvmlite.ir  # noqa: E402
import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)
from numba.core import types  # noqa: E402
from numba.core.caching import NullCache  # noqa: E402
from numba.core.dispatcher import Dispatcher  # noqa: E402
from numba.core.runtime import _nrt_python  # noqa: E402
from numba.extending import intrinsic  # noqa: E402

from crowdveil.compilation import report_compilation  # noqa: E402
from crowdveil.interrupts import STOP, KernelStoppedError  # noqa: E402

_STOP = "crowdveil_stop"
# Compiled code that is kept on the disk knows the flag by this name, since its address is another one in each process.
llvmlite.binding.add_symbol(_STOP, ctypes.addressof(STOP))

_sources: dict[Any, frozenset[str]] = {}
"""The files that a kernel is made of: its own, and those of all kernels that it calls."""


SMALL = 2000
"""Rows up to which plain Python takes less time than loading compiled code."""


def kernel(function: F) -> F:
    """Compile a function over flat arrays. One whose name begins with _ can be called by kernels alone."""
    return _compiled(function, no_cpython_wrapper=function.__name__.startswith("_"))


def inner_kernel(function: F) -> F:
    """Compile a function that kernels of other files call, and Python never does: it needs no code that converts arguments."""
    return _compiled(function, no_cpython_wrapper=True)


def plain_if_small(compiled: F, rows: int) -> F:
    """Return a kernel, or what it was compiled from where there are few rows: nothing must be loaded or compiled for them."""
    plain: F = compiled.py_func  # type: ignore[attr-defined]
    return plain if rows <= SMALL else compiled


def dividing_kernel(function: F) -> F:
    """Compile a function in which division by zero gives infinity or NaN, and no error: only such loops are vectorized."""
    return _compiled(function, error_model="numpy", no_cpython_wrapper=function.__name__.startswith("_"))


def _compiled(function: F, **options: Any) -> F:
    # No kernel is passed to another one as a value, which is what the second kind of wrapper is for.
    compiled: Any = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function)
    # All kernels that its module names, not only those that it calls: an overload calls some on its behalf.
    used = [_sources[k] for k in function.__globals__.values() if isinstance(k, Dispatcher) and k in _sources]
    _sources[compiled] = frozenset({function.__code__.co_filename}.union(*used, _structure_files(function)))
    _note_sources(compiled, sorted(_sources[compiled]))
    _save_if_allowed(compiled._cache)
    _report_if_missing(compiled._cache)
    if options.get("no_cpython_wrapper"):
        _refuse_python(compiled)
    return compiled  # type: ignore[no-any-return]


def _refuse_python(compiled: Any) -> None:
    """Let Python code that calls a kernel without a wrapper fail with an error: numba itself would jump to address 0."""

    def refuse(*given: Any, **named: Any) -> Any:
        raise TypeError(f"{compiled.py_func.__name__} can be called by kernels alone; name it without _, as a kernel.")

    def add_overload(result: Any) -> None:
        compiled.overloads[tuple(result.signature.args)] = result

    compiled._compile_for_args, compiled.add_overload = refuse, add_overload


def _structure_files(function: Callable[..., Any]) -> set[str]:
    """Return the files of the NamedTuples that a kernel's module names: kernels are compiled for the order of their fields."""
    named = (value for value in function.__globals__.values() if isinstance(value, type) and issubclass(value, tuple))
    return {str(sys.modules[cls.__module__].__file__) for cls in named if cls is not tuple}


def all_kernels() -> dict[tuple[str, str], Any]:
    """Return every kernel that is imported, by its module and name."""
    return {(k.py_func.__module__, k.py_func.__qualname__): k for k in _sources}


def _save_if_allowed(stored: Any) -> None:
    """Let a kernel that cannot be kept on the disk be compiled and used all the same."""
    save = stored.save_overload

    def save_or_not(signature: Any, data: Any) -> None:
        with suppress(OSError):
            save(signature, data)

    stored.save_overload = save_or_not


def _report_if_missing(stored: Any) -> None:
    """Report the compilation of a kernel that is not on the disk before it begins."""
    load = _load_only(stored)

    def load_or_report(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        if found is None:
            report_compilation()
        return found

    stored.load_overload = load_or_report


def _load_only(stored: Any) -> Callable[[Any, Any], Any]:
    """Return how a kernel is loaded from the disk, without all that numba needs to compile one.

    Numba's own way first declares every function that kernels may call, which takes a quarter of a second. Machine code needs
    none of them, only the addresses of numba's runtime; a kernel that is then compiled has them declared by the compiler.
    """
    if not hasattr(stored, "_load_overload") or not hasattr(stored, "_guard_against_spurious_io_errors"):
        return stored.load_overload  # type: ignore[no-any-return]

    def load(signature: Any, context: Any) -> Any:
        _add_runtime_symbols()
        with stored._guard_against_spurious_io_errors():
            return stored._load_overload(signature, context)

    return load


@cache
def _add_runtime_symbols() -> None:
    """Name the functions of numba's runtime (memory of arrays) to LLVM, as numba does before it compiles."""
    for name, address in _nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _note_sources(compiled: Any, files: list[str]) -> None:
    """Have a kernel compiled again when any of its files changed: numba looks at its own file only, and takes what it compiled
    before although a kernel that it calls is another one now.
    """
    try:
        stored = compiled._cache._cache_file
        stored._source_stamp = [_digest(file) for file in files]
    except (AttributeError, OSError):
        compiled._cache = (
            NullCache()
        )  # a numba that keeps its notes elsewhere, or sources that cannot be read: slow, but right


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the position of the lowest bit of a word of 64 bits that is set; the word is not zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_of(typing_context: Any, number: Any) -> Any:
    """Return the 64 bits of a float as a whole number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def float_of(typing_context: Any, bits: Any) -> Any:
    """Return the float of 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def bits_set(typing_context: Any, word: Any) -> Any:
    """Return how many bits of a word of 64 bits are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _stop_asked(typing_context: Any) -> Any:
    """Whether kernels are to end."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = llvmlite.ir.IntType(8)
        flag = builder.module.globals.get(_STOP) or llvmlite.ir.GlobalVariable(builder.module, byte, _STOP)
        # An atomic load is not moved out of a loop.
        value = builder.load_atomic(flag, "monotonic", 1)
        return builder.icmp_signed("!=", value, byte(0))

    return types.boolean(), generate


@kernel
def end_if_stopped() -> None:
    """End the kernel where an interrupt asks for it: for loops that run for seconds, in turns of at most milliseconds."""
    if _stop_asked():
        raise KernelStoppedError("the computation was interrupted.")
