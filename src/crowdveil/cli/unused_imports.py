"""Leave out packages that libraries import where they are installed, and that no command uses.

Pyarrow and DuckDB import pandas to see whether a value is a data frame, numba imports coverage to trace kernels; together they
take longer than a small run. For them these packages are not there. Code that imports such a package itself gets it: a method
of another package, or Spark.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

UNUSED = {"pandas": ("pyarrow", "crowdveil"), "coverage": ("numba",)}
"""Packages, and the callers that do without. Compiled code of pyarrow and DuckDB has no frame: its caller is our code."""


class _Refusal:
    """A finder of modules that finds none, and ends the search for unused ones."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise as if a package were not installed, for the callers that do without it."""
        if name in UNUSED and _caller(sys._getframe(1)).partition(".")[0] in UNUSED[name]:
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
