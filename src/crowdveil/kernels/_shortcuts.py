"""What numba does on the way to the code of a kernel and kernels do not need; left out while one is compiled, and then back.

Only one thread compiles at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from llvmlite.binding import ffi
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.transforms import canonicalize_cfg


@contextmanager
def no_linear_algebra() -> Iterator[None]:
    """Have numba declare its functions without importing SciPy's linear algebra, which takes longer than all else there.

    Numba only finds out whether it is there; a function that needs it imports it.
    """
    name = "scipy.linalg.cython_blas"
    if "numba.np.arraymath" in sys.modules or name in sys.modules or find_spec("scipy") is None:
        yield
        return
    sys.modules[name] = ModuleType(name)
    try:
        yield
    finally:
        del sys.modules[name]


@contextmanager
def unreported_locks() -> Iterator[None]:
    """Have LLVM's lock taken without telling numba's clocks, of which each kernel that is being compiled has one."""
    lock: Any = getattr(ffi.lib, "_lock", None)
    told = getattr(lock, "_cblist", [])
    if not told:
        yield
        return
    lock._cblist = []
    try:
        yield
    finally:
        lock._cblist = told


@contextmanager
def no_block_entries() -> Iterator[None]:
    """Have numba find out where variables live only where that is asked for, and not after each pass.

    What it would compute each time are variables at the entry of blocks, for generators and for Python's objects.
    """
    before = PostProcessor.run
    PostProcessor.run = _process
    try:
        yield
    finally:
        PostProcessor.run = before


_process_all = PostProcessor.run


def _process(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    if self.func_ir.is_generator:
        _process_all(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None
    if emit_dels:
        self._insert_var_dels(extend_lifetimes=extend_lifetimes)
