"""Find extensions of other packages by their entry points: names at once, records when they are used."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from importlib.metadata import EntryPoint

OURS = b"[crowdveil."
"""How the name of a group of entry points of ours begins in a package's file."""


def entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group. Python's own search, which takes longer to import than most runs need, is asked only
    where a package names a group of ours.
    """
    if not _named_anywhere():
        return ()
    from importlib import metadata

    return metadata.entry_points(group=group)


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package. Python's own way parses a whole description, which takes a tenth of a small
    run; it is asked only where the line with the version is not found.
    """
    for folder in _descriptions():
        if folder.name.lower().startswith(f"{package.replace('-', '_').lower()}-"):
            with suppress(OSError, StopIteration), (folder / "METADATA").open(encoding="utf-8") as lines:
                return next(line.partition(":")[2].strip() for line in lines if line.startswith("Version:"))
    from importlib import metadata

    return metadata.version(package)


@cache
def _descriptions() -> list[Path]:
    """Return the folders that describe installed packages, in the order in which Python looks for them."""
    found: list[Path] = []
    for place in dict.fromkeys(sys.path):
        with suppress(OSError):
            found += [folder for folder in Path(place).iterdir() if folder.suffix in (".dist-info", ".egg-info")]
    return found


@cache
def _named_anywhere() -> bool:
    """Return whether an installed package may have entry points of ours."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    if any(Path(place).is_file() for place in sys.path):
        return True  # an archive: Python's own search reads it
    for folder in _descriptions():
        with suppress(OSError):
            if OURS in (folder / "entry_points.txt").read_bytes():
                return True
    return False


@lru_cache(maxsize=16)
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
        """Return a name that is known; raise ValueError with what is expected. Entry points are read only for names of others."""
        if value not in self.own and value not in installed(self.group):
            *first, last = (f"'{name}'" for name in self.all)
            raise ValueError(f"{', '.join(first)} or {last}")
        return value
