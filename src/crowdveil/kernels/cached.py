"""Compiled kernels on the disk: where they are, which were missing, and compiling those.

A process that opens files of strangers may read compiled kernels and not write them, or it could leave code there for others.
It reports which types it called kernels with, and a trusted process compiles the same from the package's own sources.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from crowdveil.kernels._jit import all_kernels, compiler
from crowdveil.kernels._stored import SCALAR

MAX_KERNELS = 64
"""Kernels that are compiled for one process that lacked them."""
MAX_ARGUMENTS = 16


def folders() -> list[Path]:
    """Return the folders where compiled kernels are kept."""
    found = []
    for compiled in all_kernels().values():
        with suppress(AttributeError):
            found.append(Path(compiled._cache.cache_path).resolve())
    return list(dict.fromkeys(found))


def missed() -> list[list[Any]]:
    """List the kernels that this process compiled, since they were not on the disk: module, name and types, for JSON."""
    found = []
    for (module, name), kernel in all_kernels().items():
        compiled = vars(kernel).get("compiled")  # not where its code came from the disk, or it was never called
        for signature in list(getattr(getattr(compiled, "stats", None), "cache_misses", ())):
            described = [compiler().description(kind) for kind in getattr(signature, "args", signature)]
            if None not in described:
                found.append([module, name, described])
    return found[:MAX_KERNELS]


def understood(given: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return kernels and types from the report of another process; nothing of it is run, and unknown entries are left out."""
    known, found = all_kernels(), []
    for entry in given[:MAX_KERNELS] if isinstance(given, list) else []:
        match entry:
            case [str(module), str(name), list(described)] if (module, name) in known and len(
                described
            ) <= MAX_ARGUMENTS:
                kinds = tuple(_kind(t) for t in described)
                if None not in kinds:
                    found.append((known[module, name], kinds))
    return found


def compile_all(wanted: list[tuple[Any, tuple[Any, ...]]]) -> None:
    """Compile kernels for types, and keep them on the disk."""
    for compiled, kinds in wanted:
        with suppress(Exception):  # types that a kernel is not made for
            compiled.compile(kinds)


def _kind(described: Any, depth: int = 2) -> Any:
    """Return the type of a description, None if it means nothing; structures nest at most `depth` levels."""
    from numba import types

    match described:
        case str() if SCALAR.fullmatch(described):
            return types.boolean if described == "bool" else getattr(types, described)
        case [str(dtype), int(ndim), "C" | "F" | "A" as layout, bool(mutable), bool(aligned)] if (
            SCALAR.fullmatch(dtype) and 0 < ndim < 5
        ):
            return types.Array(_kind(dtype), ndim, layout, readonly=not mutable, aligned=aligned)
        case dict() if len(described) == 1 and depth > 0:
            name, fields = next(iter(described.items()))
            structure = _structures().get(name)
            if structure is not None and isinstance(fields, list) and len(fields) == len(structure._fields):
                kinds = [_kind(field, depth - 1) for field in fields]
                return None if None in kinds else types.NamedTuple(kinds, structure)
    return None


def _structures() -> dict[str, Any]:
    """Return the NamedTuples of arrays that kernels take, by module and name: no other class is looked up by a name."""
    modules = (sys.modules[module] for module, _ in all_kernels())
    named = (value for module in modules for value in vars(module).values() if hasattr(value, "_fields"))
    return {
        f"{cls.__module__}:{cls.__name__}": cls for cls in named if isinstance(cls, type) and issubclass(cls, tuple)
    }
