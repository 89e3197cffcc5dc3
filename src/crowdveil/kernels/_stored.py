"""Machine code of kernels on the disk, and how it runs without numba: importing numba takes as long as a small run.

numba keeps what it compiled, too, but in a form that only numba can read. So the same code lies next to it once more, as an
object file that LLVM links in a millisecond. It is taken only for the sources, types, processor and versions that it was made
for; for all else numba is imported, which loads its own file or compiles.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import pickle
import re
import secrets
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from crowdveil.interrupts import STOP

STOP_SYMBOL = "crowdveil_stop"
"""Compiled code that is kept on the disk knows the flag by this name, since its address is another one in each process."""
EXTENSIONS = ("_helperlib", "_dynfunc", "core.runtime._nrt_python")
"""C modules of numba that compiled code calls; they work without numba's Python code."""
UNSUITED = (AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What is raised where numba keeps things elsewhere than is expected here: kernels are then left to numba itself."""
FORMAT = 1
SCALAR = re.compile(r"none|bool|u?int(8|16|32|64)|float(32|64)")
"""Names of the types of numbers that kernels take, alone and in arrays; and of None."""
_ARRAY = np.ndarray
_MATTER = 0x001 | 0x002 | 0x100 | 0x400  # numpy's flags of arrays: order C, order Fortran, aligned, writable
_SCALARS = {type(None): "none", int: "int64", float: "float64", bool: "bool", np.bool_: "bool"} | {
    kind: np.dtype(kind).name
    for kind in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float32, np.float64)
}  # fmt: skip

Key = tuple[Any, ...]


class Code(NamedTuple):
    """Machine code of one kernel for one list of types, and what must be there before it runs."""

    object_code: bytes
    entry: str
    """Name of the function that takes Python's arguments."""
    environments: dict[str, list[str]]
    """Names of places in the code that get constants, and these: types of arrays."""
    functions: list[str]
    """Functions of the C library that numba takes from its helpers."""


def key_of(values: Iterable[Any]) -> Key | None:
    """Return what compiled code depends on in arguments; None if there is an argument of a kind that is not kept here."""
    parts: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            flags = value.flags.num & _MATTER
            if not flags & 0x100 or not value.dtype.isnative:
                return None
            parts.append((value.dtype, value.ndim, flags))
        elif kind in _SCALARS:
            if kind is int and value.bit_length() > 63:
                return None
            parts.append(_SCALARS[kind])
        elif hasattr(kind, "_fields"):
            inner = key_of(value)
            if inner is None:
                return None
            parts.append((kind, inner))
        else:
            return None
    return tuple(parts)


def quick_key(values: Iterable[Any]) -> Key | None:
    """Return a key of arguments that is made in less time: it differs wherever `key_of` does.

    Every call of a kernel makes one. It has all flags of arrays, also those that compiled code does not depend on.
    """
    parts: list[Any] = []
    return tuple(parts) if _add_parts(values, parts) else None


def _add_parts(values: Iterable[Any], parts: list[Any]) -> bool:
    """Add the parts of a quick key; return whether there is a key of these arguments."""
    for value in values:
        kind = type(value)
        if kind is _ARRAY:
            parts += value.dtype, value.ndim, value.flags.num
        elif kind in _SCALARS:
            if kind is int and value.bit_length() > 63:
                return False
            parts.append(kind)
        elif hasattr(kind, "_fields"):
            parts.append(kind)  # says how many fields follow
            if not _add_parts(value, parts):
                return False
        else:
            return False
    return True


def described(key: Key) -> list[Any]:
    """Return a key as JSON can hold it, in the form that `_compiler.description` gives of numba's types."""
    found: list[Any] = []
    for part in key:
        if isinstance(part, str):
            found.append(part)
        elif len(part) == 3:
            dtype, dimensions, flags = part
            order = "C" if flags & 0x001 else "F" if flags & 0x002 else "A"
            found.append([dtype.name, dimensions, order, bool(flags & 0x400), bool(flags & 0x100)])
        else:
            found.append({f"{part[0].__module__}:{part[0].__name__}": described(part[1])})
    return found


def file_name(function: Callable[..., Any], types: list[Any]) -> str:
    """Return the name of the file of a kernel for types."""
    digest = hashlib.sha256(json.dumps([types, sys.implementation.cache_tag]).encode()).hexdigest()[:16]
    code, name = function.__code__, re.sub(r"[^\w.]", "", function.__qualname__)
    return f"{Path(code.co_filename).stem}.{name}-{code.co_firstlineno}.{digest}.kernel"


def folders(function: Callable[..., Any]) -> list[Path]:
    """Return where numba may have kept a kernel, best first."""
    source = Path.cwd().joinpath(function.__code__.co_filename).parent
    inside = f"{source.name}_{hashlib.sha1(str(source).encode(), usedforsecurity=False).hexdigest()}"
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(given, inside)]
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return [source / "__pycache__", Path(home, "numba", inside)]


def save(path: Path, code: Code, stamp: list[str]) -> None:
    """Write machine code to a file, whole or not at all."""
    header = {
        "made for": [*stamp, *machine()],
        **code._asdict(),
        "object_code": hashlib.sha256(code.object_code).hexdigest(),
    }
    part = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        part.write_bytes(json.dumps(header).encode() + b"\n" + code.object_code)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def read(paths: Iterable[Path], stamp: list[str]) -> Code | None:
    """Read machine code from the first file that is there; None if it is missing, damaged, or made for something else."""
    for path in paths:
        with suppress(OSError, ValueError, KeyError, TypeError):
            first, _, object_code = path.read_bytes().partition(b"\n")
            header = json.loads(first)
            whole = header.pop("object_code") == hashlib.sha256(object_code).hexdigest()
            if header.pop("made for") == [*stamp, *machine()] and whole:
                return Code(object_code=object_code, **header)
    return None


def link(code: Code, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return machine code as a function of Python."""
    from llvmlite import binding

    runtime = _runtime()
    for name in code.functions:
        binding.add_symbol(name, runtime.functions[name])
    target = binding.Target.from_triple(binding.get_process_triple()).create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
    engine.add_object_file(binding.ObjectFileRef.from_data(code.object_code))
    engine.finalize_object()
    environments = []
    for name, constants in code.environments.items():
        environment = runtime.Environment(function.__globals__)
        environment.consts.extend(np.dtype(constant) for constant in constants)
        ctypes.c_void_p.from_address(engine.get_global_value_address(name)).value = id(environment)
        environments.append(environment)
    address = engine.get_function_address(code.entry)
    linked: Callable[..., Any] = runtime.make_function(
        sys.modules[function.__module__], function.__name__, function.__doc__ or "", address, environments[0],
        (engine, environments),
    )  # fmt: skip
    return linked


@cache
def machine() -> list[str]:
    """Return what compiled code depends on besides its sources: versions, the processor, and numba's settings."""
    import llvmlite
    from llvmlite import binding

    settings = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_") and k != "NUMBA_CACHE_DIR")
    version = hashlib.sha256(Path(_numba_folder(), "_version.py").read_bytes()).hexdigest()
    processor = [binding.get_process_triple(), binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    return [str(FORMAT), sys.version, version, llvmlite.__version__, *processor, *settings]


def known_symbols() -> set[str]:
    """Return the names that code may use besides those of the process itself."""
    return set(_runtime().symbols)


@cache
def _runtime() -> Any:
    """Load numba's C modules, and name their functions to LLVM as numba does before it compiles."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    helpers, functions, memory = (_extension(name) for name in EXTENSIONS)
    if "numba" not in sys.modules:
        _unpickle_without_numba(helpers)
    symbols = {"_Py_NoneStruct": id(None), STOP_SYMBOL: ctypes.addressof(STOP)}
    for helper in (helpers.c_helpers, functions.c_helpers):
        symbols |= {f"numba_{name}": address for name, address in helper.items()}
    symbols |= {name if name.startswith("_") else f"NRT_{name}": at for name, at in memory.c_helpers.items()}
    errors = (e for e in vars(sys.modules["builtins"]).values() if isinstance(e, type) and issubclass(e, BaseException))
    symbols |= {f"PyExc_{error.__name__}": id(error) for error in errors}
    for name, address in symbols.items():
        binding.add_symbol(name, address)
    return SimpleNamespace(
        symbols=symbols,
        functions=helpers.c_helpers,
        Environment=functions.Environment,
        make_function=functions.make_function,
    )


@cache
def _numba_folder() -> str:
    spec = find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("numba is not installed.", name="numba")
    return spec.submodule_search_locations[0]


def _extension(name: str) -> Any:
    """Import a C module of numba, and nothing else of it."""
    full = f"numba.{name}"
    if full in sys.modules:
        return sys.modules[full]
    folder = Path(_numba_folder(), *name.split(".")[:-1])
    spec = PathFinder.find_spec(full, [str(folder)])
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"numba has no module {name}.", name=full)
    module = module_from_spec(spec)
    sys.modules[full] = module
    spec.loader.exec_module(module)
    return module


def _unpickle_without_numba(helpers: Any) -> None:
    """Have constants of compiled code (classes, errors) read by pickle alone.

    numba's C code asks `numba.core.serialize` for the function once and keeps it. That of numba does the same as this one.
    """
    known: dict[tuple[int, bytes], Any] = {}

    def load(address: int, pickled: bytes, digest: bytes) -> Any:
        key = address, digest
        if key not in known:
            known[key] = pickle.loads(pickled)
        return known[key]

    names = "numba", "numba.core.serialize"
    for name in names:
        sys.modules[name] = stand_in = ModuleType(name)
        stand_in._numba_unpickle = load  # type: ignore[attr-defined]
    try:
        nothing = pickle.dumps(None)
        call = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)
        call(helpers.c_helpers["unpickle"])(nothing, len(nothing), bytes(20))
    finally:
        for name in names:
            del sys.modules[name]
