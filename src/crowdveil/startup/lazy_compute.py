"""Wrap a function of `pyarrow.compute` when it is first asked for: a run calls thirty of three hundred.

At its import, `pyarrow.compute` makes a Python function with a signature and a help text for each function of its registry,
which takes longer than most stages of a small run. Here its own code makes them one at a time. Where that code is another than
expected, the module is imported as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any

NAME = "pyarrow.compute"
AT_ONCE = ("utf8_zero_fill",)
"""Functions that the module gives a second name to."""
PYTHON_NAMES = {"and_": "and", "or_": "or"}
"""Functions whose own names are words of Python."""
MAKE, REGISTRY = "_make_global_functions", "function_registry"
"""What makes all functions, and where it gets the list of their names from."""


class _Some:
    """A registry that lists some of its functions."""

    def __init__(self, registry: Any, names: Sequence[str]) -> None:
        self._names, self.get_function = names, registry.get_function

    def list_functions(self) -> list[str]:
        """Return the names."""
        return list(self._names)


class FunctionsOnDemand:
    """A loader of the module that makes functions when they are asked for."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Leave making the module to Python."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Run the module with few functions in the registry; run it again as it is where that fails."""
        from pyarrow import _compute

        registry, before = getattr(_compute, REGISTRY, None), dict(vars(module))
        if registry is not None:
            try:
                setattr(_compute, REGISTRY, lambda: _Some(registry(), AT_ONCE))
                self._loader.exec_module(module)
                make = getattr(module, MAKE)
            except (AttributeError, AssertionError, LookupError, NameError, TypeError):
                vars(module).clear()
                vars(module).update(before)
            else:
                vars(module)[REGISTRY] = registry
                vars(module)["__getattr__"] = _maker(module, registry, make)
                return
            finally:
                setattr(_compute, REGISTRY, registry)
        self._loader.exec_module(module)


def _maker(module: ModuleType, registry: Any, make: Any) -> Any:
    """Return what makes a function of the module by its name."""
    lock = RLock()
    known = set(registry().list_functions())

    def of_name(name: str) -> Any:
        own = PYTHON_NAMES.get(name, name)
        if own in known:
            with lock:
                if name not in vars(module):
                    vars(module)[REGISTRY] = lambda: _Some(registry(), [own])
                    try:
                        make()
                    finally:
                        vars(module)[REGISTRY] = registry
                if name in vars(module):
                    return vars(module)[name]
        raise AttributeError(f"module {NAME!r} has no attribute {name!r}", name=name, obj=module)

    return of_name


def spec_on_demand(path: Sequence[str] | None, without: Any) -> ModuleSpec | None:
    """Return how the module is loaded, as the finders but one find it; None where they do not."""
    for finder in sys.meta_path:
        if finder is not without and (spec := finder.find_spec(NAME, path, None)) is not None:
            if spec.loader is not None:
                spec.loader = FunctionsOnDemand(spec.loader)  # type: ignore[assignment]
            return spec
    return None
