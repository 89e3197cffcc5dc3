"""The methods, one module each; see `crowdveil.methods()` for a table of them."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """This package, which Python puts in the place of the public function of the same name once it is imported."""

    def __call__(self) -> Any:
        """Return the table of methods. The function is found by name: methods import nothing above them."""
        return import_module("crowdveil.api.release").methods()


sys.modules[__name__].__class__ = _Callable
