"""Check that the rows of a derived release are sums of rows of its parent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from pydantic import Field

from crowdveil.errors import InputError, counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.io.written_release import MANIFEST_FILE, NO_TIME, WrittenRelease, file_hash, read_release

_ROLES = ("data", "steps", "areas")
Key = tuple[Any, ...]
NO_ROW: Key = ()
"""The key of a row that was left out."""


class SumsOfParent(Guarantee):
    """Every row is the sum of rows of the release that it was derived from."""

    name: ClassVar[str] = "sums-of-parent"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "wrong": "sum", "missing": "max"}
    from_data: ClassVar[tuple[str, ...]] = ("parent", "sha256", "tz")

    parent: str = Field(pattern=r"^[^/\\\x00]{1,255}$")
    """Name of the folder of the parent, next to the folder of the release."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of the parent's table of flows."""
    step_s: int | None = Field(None, ge=1)
    """Length of the time steps of the sums; None for those of the parent."""
    tz: str = "UTC"
    """Time zone of the time steps."""
    one_step: bool = False
    """Whether all time steps were added up to one."""
    zones: bool = False
    """Whether areas were added up to zones."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return f"Every row is a sum of rows of the release {self.parent}, and reveals nothing more than that."

    def check(self, written: WrittenRelease) -> Finding:
        """Add up the rows of the parent, if it is next to the release, and compare the sums."""
        return self.check_in(written, Path(written.folder).absolute().parent / self.parent)

    def check_in(self, written: WrittenRelease, folder: Path) -> Finding:
        """Check against the parent in a folder."""
        parent = self._parent(folder)
        return self.make_finding(False, {"missing": 1}, open_=True) if parent is None else self.compare(parent, written)

    def compare(self, parent: WrittenRelease, written: WrittenRelease) -> Finding:
        """Compare the rows with sums of the rows of the parent."""
        wanted, groups = _added_up(self._keys(parent, written), parent)
        found, own_groups = _added_up(_own_keys(written), written)
        del wanted[NO_ROW]
        wrong = sum((wanted.get(key), groups[key]) != (volume, own_groups[key]) for key, volume in found.items())
        wrong += sum(key not in found for key in wanted)
        wrong += int(written.listed("suppressed")[1].sum())  # totals are not added up
        return self.make_finding(wrong > 0, {"rows": len(written.data), "wrong": wrong})

    def rows_of_parent(self, parent: WrittenRelease, written: WrittenRelease) -> list[int]:
        """Return the row to which each row of the parent was added, -1 if it was left out."""
        number = {key: row for row, key in enumerate(_own_keys(written))}
        return [number.get(key, -1) for key in self._keys(parent, written)]

    def _parent(self, path: Path) -> WrittenRelease | None:
        """Return the parent, if the folder has a release with the hash of the manifest; nothing else is read."""
        try:
            named = json.loads((path / MANIFEST_FILE).read_text(encoding="utf-8"))["files"]
            files = {role: str(named[role]["name"]) for role in _ROLES}
            plain = all(Path(name).name == name for name in files.values())
            if not plain or file_hash(path / files["data"]) != self.sha256:
                return None
            return read_release(path, files)
        except (OSError, ValueError, KeyError, TypeError, RecursionError, InputError):
            return None

    def _keys(self, parent: WrittenRelease, written: WrittenRelease) -> list[Key]:
        """Return the time step and areas of each row of the parent in the release; NO_ROW if an area was left out."""
        areas = _areas_in(parent, written, self.zones)
        same = self.step_s is None and not self.one_step
        keys: list[Key] = []
        for t, until, origin, destination in _own_keys(parent):
            pair = areas.get(origin), areas.get(destination)
            keys.append(NO_ROW if None in pair else (self._step(t), until if same else None, *pair))
        return keys

    def _step(self, seconds: int | None) -> int | None:
        """Return the start of the time step of a time."""
        if seconds is None or self.one_step:
            return None
        if self.step_s is None:
            return seconds
        local = datetime.fromtimestamp(seconds, UTC).astimezone(ZoneInfo(self.tz)).replace(tzinfo=None)
        wall = int((local - datetime(1970, 1, 1)).total_seconds())
        week = 4 * 86400 if self.step_s % 604800 == 0 else 0
        start = (wall - week) // self.step_s * self.step_s + week
        at = datetime.fromtimestamp(start, UTC).replace(tzinfo=ZoneInfo(self.tz))
        return int(at.timestamp())

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows differ from the sums."""
        if counts["missing"]:
            return f"the release {self.parent} is not next to this one, or was changed; put it there to check the sums."
        return f"{counted(counts['rows'], 'row')} compared with sums of the parent's rows, {counts['wrong']:,} differ."


def _added_up(keys: list[Key], written: WrittenRelease) -> tuple[Counter[Key], Counter[Key]]:
    """Return the volume and the group size of each key: the largest one, since people of several rows may be the same."""
    people = "people" in written.data.column_names
    sums, groups = Counter[Key](), Counter[Key]()
    sizes = written.column("people" if people else "trips").tolist()
    for key, volume, size in zip(keys, written.column("volume").tolist(), sizes, strict=True):
        sums[key] += volume
        groups[key] = max(groups[key], size) if people else groups[key] + size
    return sums, groups


def _areas_in(parent: WrittenRelease, written: WrittenRelease, zones: bool) -> dict[str, str | None]:
    """Return the area of the release for each area of the parent: the one with the same tiles, or the only zone with all of them.

    It is None if there is no such area, or several.
    """
    named = [(f["properties"]["area"], frozenset(f["properties"]["tiles"])) for f in written.features]
    equal, zones_of = {tiles: name for name, tiles in named}, dict[str, set[str]]()
    for name, tiles in named if zones else ():
        for tile in tiles:
            zones_of.setdefault(tile, set()).add(name)
    found: dict[str, str | None] = {}
    for area in (f["properties"] for f in parent.features):
        found[area["area"]] = equal.get(frozenset(area["tiles"]))
        if found[area["area"]] is None:
            several = set.intersection(*(zones_of.get(tile, set()) for tile in area["tiles"]))
            found[area["area"]] = next(iter(several)) if len(several) == 1 else None
    return found


def _own_keys(written: WrittenRelease) -> list[Key]:
    """Return time, end of the interval (None if there is none) and areas of each row."""
    times, index = written.row_steps()
    starts = [None if t == NO_TIME else t for t in times.tolist()]
    until = written.row_intervals()[1].tolist() if written.has_intervals else [None] * len(written.data)
    names = [written.data[column].to_pylist() for column in ("origin_area", "destination_area")]
    return [(starts[i], *rest) for i, *rest in zip(index.tolist(), until, *names, strict=True)]
