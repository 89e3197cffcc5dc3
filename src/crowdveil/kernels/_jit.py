"""The one place for compiler options of kernels.

No `fastmath`, so that the same data gives the same bytes; no `prange`, so that a server or a cluster may fork or
call from several threads; `nogil`, so that threads over time steps or blocks run side by side.
"""

from __future__ import annotations

import getpass
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def _writable_cache() -> None:
    """Give numba a place for compiled kernels where neither the package nor the home folder can be written."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    package = Path(__file__).parent
    if not os.access(package, os.W_OK) and not os.access(Path.home(), os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = str(Path(tempfile.gettempdir()) / f"crowdveil-kernels-{getpass.getuser()}")


_writable_cache()

import numba  # noqa: E402  (reads NUMBA_CACHE_DIR when it is imported)


def kernel(function: F) -> F:
    """Compile a function over flat arrays."""
    compiled: F = numba.njit(cache=True, nogil=True)(function)
    return compiled
