"""Leave out packages that libraries import where they are installed, and that no command uses.

Pyarrow and DuckDB import pandas to see whether a value is a data frame; numba imports coverage to trace kernels, and scipy to
see whether it is there for products of matrices. Together they take longer than a small run. For them these packages are not
there. Code that imports such a package itself gets it: a method of another package, or Spark. Pyarrow reads the help texts of its
options again to write those of its functions, and pydantic looks through all installed packages for plugins; pyproj imports what
downloads grids, and numpy adds help texts to its compiled functions. No command uses any of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any

UNUSED = {"pandas": ("pyarrow", "crowdveil"), "coverage": ("numba",), "scipy": ("numba",)}
"""Packages, and the callers that do without. Compiled code of pyarrow and DuckDB has no frame: its caller is our code."""
USERS = ("crowdveil.engine.spark", "crowdveil.run.spark")
"""Modules of ours whose libraries need these packages."""


class _StandIn:
    """A loader of a module that has only what other modules take from it."""

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave making the module to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        vars(module).update(self._content)


class _Refusal:
    """A finder that ends the search for unused packages, and finds stand-ins of unused modules; it finds no other module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise as if a package were not installed, for the callers that do without it."""
        if name in STAND_INS:
            return ModuleSpec(name, _StandIn(STAND_INS[name]))  # type: ignore[arg-type]
        if name == "pyarrow.compute":
            from crowdveil.startup.lazy_compute import spec_on_demand  # here, since `--help` does not need it

            return spec_on_demand(path, self)
        if name not in UNUSED:
            return None
        caller = _caller(sys._getframe(1))
        if name == "scipy" and hasattr(sys.modules.get("numba.np.arraymath"), "_HAVE_BLAS"):
            return None  # numba needs it now: a kernel of another package multiplies matrices
        if caller.partition(".")[0] in UNUSED[name] and not caller.startswith(USERS):
            raise ModuleNotFoundError(f"{name} is left out of commands.", name=name)
        return None


def _caller(frame: FrameType | None) -> str:
    """Return the name of the module that imports: the nearest frame outside of the import system."""
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith(("importlib", "_frozen_importlib")):
        frame = frame.f_back
    return "" if frame is None else str(frame.f_globals.get("__name__", ""))


def leave_out_unused() -> None:
    """Leave out the unused packages in this process, once."""
    if not any(isinstance(finder, _Refusal) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Refusal())


def _refuse_download(*_: Any, **__: Any) -> None:
    raise OSError("commands download nothing.")


STAND_INS: dict[str, dict[str, Any]] = {
    "numpy._core._add_newdocs": {},
    "numpy._core._add_newdocs_scalars": {},
    "pyarrow.vendored.docscrape": {"NumpyDocString": lambda text: {"Parameters": []}},
    "pydantic.plugin._loader": {"get_plugins": lambda: ()},
    "pyproj._show_versions": {"show_versions": lambda: None},
    "pyproj.sync": {"_download_resource_file": _refuse_download},
}
"""Modules that libraries import and commands never call, and what those libraries take from them."""
