"""The one list of methods, in the order that people see them.

Methods are named by module, so that listing a command's options imports the one method that it speaks of. Others are
found through the entry-point group `crowdveil.methods`.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from importlib.metadata import entry_points

from crowdveil.errors import ParameterError
from crowdveil.method import Method

METHODS: dict[str, str] = {
    "joint": "crowdveil.methods.od.joint",
    "atg-dual": "crowdveil.methods.od.atg_dual",
    "atg-soft": "crowdveil.methods.od.atg_soft",
    "atg-coupled": "crowdveil.methods.od.atg_coupled",
    "suppression": "crowdveil.methods.od.suppression",
    "simple-generalization": "crowdveil.methods.trajectory.simple_generalization",
}
ENTRY_POINTS = "crowdveil.methods"


@lru_cache(maxsize=1)
def all_methods() -> dict[str, Method]:
    """All methods by name: those of this package, then those of others."""
    found = {name: _own(name) for name in METHODS}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name):
        method = point.load()
        if not isinstance(method, Method):
            raise ParameterError(
                f"the entry point {point.name} of {ENTRY_POINTS} is no Method; its package is at fault."
            )
        if method.name in found:
            raise ParameterError(f"two installed packages have a method {method.name}; uninstall one of them.")
        found[method.name] = method
    return found


def find_method(name: str) -> Method:
    """A method by its name or one of its aliases."""
    if name in METHODS:
        return _own(name)
    for method in all_methods().values():
        if name == method.name or name in method.aliases:
            return method
    raise ParameterError(f"there is no method {name}; known are {', '.join(all_methods())}.")


def _own(name: str) -> Method:
    method: Method = import_module(METHODS[name]).METHOD
    return method
