"""Compiled kernels on the disk: where they are, which were not there, and putting those there.

A process that opens files of strangers may read what is compiled and not write it, or it could leave code there for others.
It tells which types it called kernels with, and a process that is trusted compiles the same from our own sources.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from numba import types

from crowdveil.kernels._jit import all_kernels

MOST = 64
"""Kernels that are compiled for one process that lacked them."""
ARGUMENTS_MOST = 40
_SCALAR = re.compile(r"bool|u?int(8|16|32|64)|float(32|64)")


def folders() -> list[Path]:
    """Where compiled kernels are kept."""
    found = []
    for compiled in all_kernels().values():
        with suppress(AttributeError):
            found.append(Path(compiled._cache.cache_path).resolve())
    return list(dict.fromkeys(found))


def missed() -> list[list[Any]]:
    """Kernels that this process compiled, since they were not on the disk: module, name and types, as JSON can hold them."""
    found = []
    for (module, name), compiled in all_kernels().items():
        for signature in list(getattr(compiled.stats, "cache_misses", ())):
            told = [_told(kind) for kind in getattr(signature, "args", signature)]
            if None not in told:
                found.append([module, name, told])
    return found[:MOST]


def understood(given: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Kernels and types of what a process says that it missed; nothing of it is run, and what means nothing is left out."""
    known, found = all_kernels(), []
    for entry in given[:MOST] if isinstance(given, list) else []:
        match entry:
            case [str(module), str(name), list(told)] if (module, name) in known and len(told) <= ARGUMENTS_MOST:
                kinds = tuple(_kind(t) for t in told)
                if None not in kinds:
                    found.append((known[module, name], kinds))
    return found


def compile_all(wanted: list[tuple[Any, tuple[Any, ...]]]) -> None:
    """Compile kernels for types, and keep them on the disk."""
    for compiled, kinds in wanted:
        with suppress(Exception):  # types that a kernel is not made for
            compiled.compile(kinds)


def _told(kind: Any) -> Any:
    if isinstance(kind, types.Array) and _SCALAR.fullmatch(str(kind.dtype)):
        return [str(kind.dtype), kind.ndim, kind.layout, kind.mutable, kind.aligned]
    return str(kind) if _SCALAR.fullmatch(str(kind)) else None


def _kind(told: Any) -> Any:
    match told:
        case str() if _SCALAR.fullmatch(told):
            return types.boolean if told == "bool" else getattr(types, told)
        case [str(dtype), int(ndim), "C" | "F" | "A" as layout, bool(mutable), bool(aligned)] if (
            _SCALAR.fullmatch(dtype) and 0 < ndim < 5
        ):
            return types.Array(_kind(dtype), ndim, layout, readonly=not mutable, aligned=aligned)
    return None
