"""Compile kernels: the one place for the options of numba.

No `fastmath`, so that the same data gives the same bytes; no `prange`, so that a server or a cluster may fork or call from
several threads; `nogil`, so that threads over time steps or blocks run side by side.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np

from crowdveil.kernels._types import AnyArray

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a function over flat arrays at its first call, and keep the machine code on the disk."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE)
    try:
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    finally:
        numba.config.CACHE_DIR = before  # other users of numba in this process keep their own


def compiled_before() -> bool:
    """Return whether there is machine code on the disk; only the first run after an update compiles all kernels."""
    return any(CACHE.iterdir())


def _cache_folder() -> Path:
    """Return the folder of machine code, which must belong to this user alone: whoever writes to it can run any code."""
    name = f"kernels-{_digest()}"
    for parent in _parents():
        with suppress(OSError):
            folder = parent / name
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_safe(parent) and _is_private(folder):
                return folder
    return Path(tempfile.mkdtemp(prefix="crowdveil-kernels-"))


def _digest() -> str:
    """Return a digest of all kernels, since numba does not see that a kernel in another file has changed."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _parents() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    with suppress(RuntimeError):  # a user without a home
        yield Path(cache).expanduser() / "crowdveil"
    yield Path(tempfile.gettempdir()) / f"crowdveil-{_user()}"


def _user() -> int:
    return os.getuid() if hasattr(os, "getuid") else 0  # Windows has a temporary folder for each user


def _is_safe(parent: Path) -> bool:
    """Return whether no other user can replace a folder in this one."""
    status = parent.stat()
    return status.st_uid in (_user(), 0) and (not status.st_mode & 0o002 or bool(status.st_mode & stat.S_ISVTX))


def _is_private(folder: Path) -> bool:
    """Return whether a folder is this user's, closed to others, and can be written."""
    status = folder.lstat()
    private = stat.S_ISDIR(status.st_mode) and status.st_uid == _user() and not status.st_mode & 0o077
    return private and os.access(folder, os.W_OK)


CACHE = _cache_folder()


@kernel
def grow(array: AnyArray, needed: int) -> AnyArray:
    """Return the array, or a copy of at least twice the size if it is too small."""
    if needed <= len(array):
        return array
    larger = np.empty(max(needed, 2 * len(array)), array.dtype)
    larger[: len(array)] = array
    return larger
