"""Find extensions of other packages by their entry points: names at once, records when they are used."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from crowdveil.errors import ParameterError


@cache
def installed(group: str) -> dict[str, EntryPoint]:
    """Return the entry points of a group by name, in the order of their names."""
    found: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=group), key=lambda p: p.name):
        if point.name in found:
            raise ParameterError(f"two installed packages have {point.name} in {group}; uninstall one of them.")
        found[point.name] = point
    return found


def load(group: str, name: str, kind: type) -> Any:
    """Load the record of an entry point; raise unless it is of this type and has the name of the entry point."""
    record = installed(group)[name].load()
    if not isinstance(record, kind) or getattr(record, "name", name) != name:
        raise ParameterError(
            f"the entry point {name} of {group} is no {kind.__name__} of this name; its package is at fault."
        )
    return record


@dataclass(frozen=True)
class OpenNames:
    """The names of a kind of extension: our own, and those of installed packages.

    Attributes
    ----------
    group
        The group of entry points.
    own
        Our own names.
    """

    group: str
    own: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """Return all names."""
        return (*self.own, *(name for name in installed(self.group) if name not in self.own))

    def check(self, value: str) -> str:
        """Return a name that is known; raise ValueError with the known names. Entry points are read only for unknown ones."""
        if value not in self.own and value not in installed(self.group):
            *first, last = (f"'{name}'" for name in self.all)
            raise ValueError(f"{', '.join(first)} or {last}")
        return value
