"""The one place for compiler options of kernels.

No `fastmath`, so that the same data gives the same bytes; no `prange`, so that a server or a cluster may fork or
call from several threads; `nogil`, so that threads over time steps or blocks run side by side.

Nothing here imports numba: a kernel that is on the disk runs without it (`_stored`), others through `_compiler`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property, partial, update_wrapper
from inspect import signature
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from crowdveil.interrupts import KernelStoppedError
from crowdveil.kernels import _stored

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

_lock = RLock()
_sources: dict[Any, frozenset[str]] = {}
"""The files that a kernel is made of: its own, and those of all kernels that it calls."""
_overloads: list[tuple[Callable[..., Any], Callable[..., Any]]] = []

SMALL = 2000
"""Rows up to which plain Python takes less time than loading compiled code."""


class Kernel:
    """A function over flat arrays that runs as machine code: from the disk where it is there, else compiled at its first call."""

    def __init__(self, function: Callable[..., Any], *, inner: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self.options, self.inner = function, options, inner
        self.loaded: list[list[Any]] = []
        """Types that code from the disk was taken for."""
        self._code: dict[_stored.Key, Callable[..., Any]] = {}
        self._ready: dict[_stored.Key, Callable[..., Any]] = {}
        """The same by quick keys, of which several may have the same code."""
        self._count = function.__code__.co_argcount

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Run the kernel."""
        if named or len(given) != self._count:
            given = self._in_order(given, named)
        quick = _stored.quick_key(given)
        call = self._ready.get(quick) if quick is not None else None
        return (call or self._prepared(quick, given))(*given)

    def code_for(self, given: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what runs the kernel for arguments like these, all of them given."""
        return self._prepared(_stored.quick_key(given), given)

    def __getattr__(self, name: str) -> Any:
        """Return what numba's object of the kernel has: statistics, signatures, its file."""
        if name.startswith("__") or name in ("py_func", "options"):
            raise AttributeError(name)
        return getattr(self.compiled, name)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @cached_property
    def compiled(self) -> Any:
        """Numba's object of the kernel, for calls from Python."""
        return compiler().dispatcher_of(self, inner=self.inner)

    @cached_property
    def linked(self) -> Any:
        """Numba's object of the kernel, for kernels that call it."""
        return compiler().dispatcher_of(self, inner=True)

    @cached_property
    def stamp(self) -> list[str] | None:
        """Digests of the files that the kernel is made of; None if they cannot be read."""
        try:
            return [_digest(file) for file in sorted(_sources[self])]
        except (KeyError, OSError):
            return None

    def _prepared(self, quick: _stored.Key | None, given: tuple[Any, ...]) -> Callable[..., Any]:
        if self.inner:
            raise TypeError(f"{self.py_func.__name__} can be called by kernels alone; name it without _, as a kernel.")
        with _lock:
            key = _stored.key_of(given)
            if key is None or quick is None:
                return self.compiled  # type: ignore[no-any-return]
            if key not in self._code:
                self._code[key] = self._from_disk(key) or self.compiled
            self._ready[quick] = self._code[key]
            return self._code[key]

    def _from_disk(self, key: _stored.Key) -> Callable[..., Any] | None:
        if self.stamp is None:
            return None
        types = _stored.described(key)
        name = _stored.file_name(self.py_func, types)
        try:
            code = _stored.read([folder / name for folder in _stored.folders(self.py_func)], self.stamp)
            linked = None if code is None else _stored.link(code, self.py_func)
        except _stored.UNSUITED:
            return None
        if linked is not None:
            self.loaded.append(types)
        return linked

    def _in_order(self, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        bound = signature(self.py_func).bind(*given, **named)
        bound.apply_defaults()
        return bound.args


class BoundKernel:
    """A kernel with its first arguments: what they are is found out once, not at every call."""

    def __init__(self, bound: Kernel, *first: Any) -> None:
        self._bound, self._first = bound, first
        self._ready: dict[_stored.Key, Callable[..., Any]] = {}

    def __call__(self, *given: Any) -> Any:
        """Run the kernel with its first arguments and these."""
        quick = _stored.quick_key(given)
        call = self._ready.get(quick) if quick is not None else None
        if call is None:
            call = self._bound.code_for((*self._first, *given))
            if quick is not None:
                self._ready[quick] = call
        return call(*self._first, *given)

    def __reduce__(self) -> Any:
        return BoundKernel, (self._bound, *self._first)


class Intrinsic:
    """A function of kernels that is given as instructions of LLVM; numba is needed only where a kernel is compiled."""

    def __init__(self, definition: Callable[..., Any]) -> None:
        update_wrapper(self, definition)
        self._definition = definition
        self._made: Any = None

    def made(self, intrinsic: Callable[..., Any]) -> Any:
        """Return numba's object of it."""
        if self._made is None:
            self._made = intrinsic(self._definition)
        return self._made

    def __call__(self, *given: Any) -> Any:
        """Refuse: only kernels can call it."""
        raise NotImplementedError(f"{self._definition.__name__} can be called by kernels alone.")


@cache
def _compiler() -> Any:
    from crowdveil.kernels import _compiler

    _compiler.register(Kernel, Intrinsic)
    return _compiler


def compiler() -> Any:
    """Return the module that needs numba, with all that kernels have stated about themselves."""
    with _lock:
        found = _compiler()
        while _overloads:
            found.add_overload(*_overloads.pop())
        return found


def kernel(function: F) -> F:
    """Compile a function over flat arrays. One whose name begins with _ can be called by kernels alone."""
    return _as_kernel(function, inner=function.__name__.startswith("_"))


def inner_kernel(function: F) -> F:
    """Compile a function that kernels of other files call, and Python never does: it needs no code that converts arguments."""
    return _as_kernel(function, inner=True)


def dividing_kernel(function: F) -> F:
    """Compile a function in which division by zero gives infinity or NaN, and no error: only such loops are vectorized."""
    return _as_kernel(function, inner=function.__name__.startswith("_"), error_model="numpy")


def instead_of(function: Callable[..., Any]) -> Callable[[F], F]:
    """Have kernels that call a function of Python call what the decorated one returns for the types of its arguments."""

    def add(implementation: F) -> F:
        _overloads.append((function, implementation))
        return implementation

    return add


def bind(function: Callable[..., Any], *first: Any) -> Callable[..., Any]:
    """Return a kernel with its first arguments given, for many calls with the same."""
    return BoundKernel(function, *first) if isinstance(function, Kernel) else partial(function, *first)


def plain_if_small(compiled: F, rows: int) -> F:
    """Return a kernel, or what it was compiled from where there are few rows: nothing must be loaded or compiled for them."""
    plain: F = compiled.py_func  # type: ignore[attr-defined]
    return plain if rows <= SMALL else compiled


def _as_kernel(function: F, *, inner: bool = False, **options: Any) -> F:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        return function  # plain Python, for the coverage of tests
    made = Kernel(function, inner=inner, options=options)
    # All kernels that its module names, not only those that it calls: an overload calls some on its behalf.
    used = [_sources[k] for k in function.__globals__.values() if isinstance(k, Kernel) and k in _sources]
    _sources[made] = frozenset({function.__code__.co_filename}.union(*used, _structure_files(function)))
    return made  # type: ignore[return-value]


def _structure_files(function: Callable[..., Any]) -> set[str]:
    """Return the files of the NamedTuples that a kernel's module names: kernels are compiled for the order of their fields."""
    named = (value for value in function.__globals__.values() if isinstance(value, type) and issubclass(value, tuple))
    return {str(sys.modules[cls.__module__].__file__) for cls in named if cls is not tuple}


def all_kernels() -> dict[tuple[str, str], Any]:
    """Return every kernel that is imported, by its module and name."""
    return {(k.py_func.__module__, k.py_func.__qualname__): k for k in _sources}


@cache
def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


@Intrinsic
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """Return the position of the lowest bit of a word of 64 bits that is set; the word is not zero."""
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.int64), generate


@Intrinsic
def bits_of(typing_context: Any, number: Any) -> Any:
    """Return the 64 bits of a float as a whole number."""
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@Intrinsic
def float_of(typing_context: Any, bits: Any) -> Any:
    """Return the float of 64 bits."""
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@Intrinsic
def bits_set(typing_context: Any, word: Any) -> Any:
    """Return how many bits of a word of 64 bits are set."""
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@Intrinsic
def _stop_asked(typing_context: Any) -> Any:
    """Whether kernels are to end."""
    from llvmlite import ir
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8)
        name = _stored.STOP_SYMBOL
        flag = builder.module.globals.get(name) or ir.GlobalVariable(builder.module, byte, name)
        # An atomic load is not moved out of a loop.
        value = builder.load_atomic(flag, "monotonic", 1)
        return builder.icmp_signed("!=", value, byte(0))

    return types.boolean(), generate


@kernel
def end_if_stopped() -> None:
    """End the kernel where an interrupt asks for it: for loops that run for seconds, in turns of at most milliseconds."""
    if _stop_asked():
        raise KernelStoppedError("the computation was interrupted.")
