"""Crowdveil hides every traveler in a crowd of at least k, and proves it on the file that it writes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from crowdveil.version import __version__ as __version__

if TYPE_CHECKING:
    from crowdveil.verbs.api import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Import the public names when one is first used: `crowdveil --help` needs none of them."""
    if name == "__all__":
        return __dir__()
    # Python imports the parts of the package itself, after it has asked here.
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None and name in __dir__():
        return getattr(import_module("crowdveil.verbs.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [name for name in vars(import_module("crowdveil.verbs.api")) if not name.startswith("_")]
