"""Readable names of areas, from the names of their zones: "Astoria + 3", "Queens / northwest (Astoria + 27)", "Queens".

Units of the user's own levels (`--hierarchy` with a table) come first: an area that is such a unit has its name.

A name depends on the tiles of its area, on its id and on the public zones, never on trips: it reveals nothing that the list of
tiles does not show, and an area has one name in all releases over the same zones. Only where areas overlap in a way that no tree
does, two areas of a release may get one name; then both get the end of their ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Indices, Labels
from crowdveil.model.zones import Zones

MAX_LENGTH = 60
_ZONE_LENGTH, _REGION_LENGTH, _UNIT_LENGTH = 30, 14, 32
_MANY = 5
"""Tiles from which on a name has the region too."""
_WINDS = ("east", "northeast", "north", "northwest", "west", "southwest", "south", "southeast")


def area_labels(areas: Areas) -> list[str]:
    """Return the readable name of each area, all different and of at most 60 characters."""
    zones, of_tile, alone = areas.zones, zone_labels(areas.zones, _ZONE_LENGTH), zone_labels(areas.zones)
    weight = _weights(zones)
    regions, units = _Regions(zones, of_tile), _unit_labels(zones, (*of_tile, *alone))
    labels = []
    for i, name in enumerate(areas.names):
        tiles = areas.tiles[areas.offsets[i] : areas.offsets[i + 1]]
        if len(tiles) == 1:
            labels.append(alone[tiles[0]])
        elif (unit := units.get(np.sort(tiles).astype(np.int64).tobytes())) is not None:
            labels.append(f"{unit}{_suffix(str(name))}")
        else:
            labels.append(_label(str(name), tiles, of_tile, weight, regions))
    return _without_repeats(labels, areas.names)


def zone_labels(zones: Zones, length: int = MAX_LENGTH) -> list[str]:
    """Return the name of each zone, or its id, in at most `length` characters; names that several zones have get the id too."""
    names = [str(i) for i in zones.ids] if zones.names is None else [str(n) for n in zones.names]
    short = [_cut(name, length) for name in names]
    often = Counter(short)
    labels = [
        f"{_cut(label, length - 11)} ({_cut(str(zones.ids[i]), 8)})" if often[label] > 1 else label
        for i, label in enumerate(short)
    ]
    # Long ids may begin alike: the position among the sorted zones is public too.
    often = Counter(labels)
    return [f"{_cut(text, 20)} #{i + 1}" if often[text] > 1 else text for i, text in enumerate(labels)]


def _unit_labels(zones: Zones, taken: Sequence[str]) -> dict[bytes, str]:
    """Return the label of each named unit by its sorted tiles: different from each other and from those of zones.

    They follow from the tree alone, so that a unit has one name in every release with it.
    """
    short = [_cut(name, _UNIT_LENGTH) for name, _ in zones.units]
    often = Counter([*short, *set(taken)])
    sized = [
        f"{label} ({len(tiles)} zones)" if often[label] > 1 else label
        for label, (_, tiles) in zip(short, zones.units, strict=True)
    ]
    often = Counter([*sized, *set(taken)])
    labels = [f"{_cut(label, 20)} #{i + 1}" if often[label] > 1 else label for i, label in enumerate(sized)]
    keys = (np.sort(tiles).astype(np.int64).tobytes() for _, tiles in zones.units)
    found: dict[bytes, str] = {}
    for key, label in zip(keys, labels, strict=True):
        found.setdefault(key, label)
    return found


def _weights(zones: Zones) -> Sequence[float]:
    """Return the size of each zone; equal sizes where there are no outlines."""
    if not zones.located:
        return [1.0] * len(zones)
    size = zones.area_m2
    sizes: list[float] = np.where(np.isfinite(size), size, 1.0).round(3).tolist()
    return sizes


def _coarsest_units(zones: Zones) -> Labels | None:
    """Return the largest named unit that each tile is in, apart from units of all tiles; None where there are none."""
    found = np.full(len(zones), None, dtype=object)
    for name, tiles in sorted(zones.units, key=lambda unit: len(unit[1])):
        if len(tiles) < len(zones):
            found[tiles] = name
    return found if any(name is not None for name in found) else zones.regions


class _Regions:
    """The regions of zones, such as boroughs or the user's coarsest units: their tiles, and names that no zone has."""

    def __init__(self, zones: Zones, of_tile: Sequence[str]) -> None:
        self.zones, self.of = zones, _coarsest_units(zones) if zones.units else zones.regions
        held = Counter() if self.of is None else Counter(str(region) for region in self.of if region is not None)
        taken = set(of_tile)
        self.size = held
        self.box: dict[str, list[tuple[float, float]]] = {}
        self.text = {
            name: _cut(name, _REGION_LENGTH) if _cut(name, _REGION_LENGTH) not in taken else f"{_cut(name, 8)} (all)"
            for name in held
        }

    def named(self, tiles: Indices, core: str) -> str:
        """Return the name of an area of several tiles: of its region where it has one, and `core`."""
        if self.of is None:
            return core
        found = Counter(str(r) for r in self.of[tiles].tolist() if r is not None)
        (first, most), *others = found.most_common(2) or [("", 0)]
        if most == len(tiles) and most == self.size[first] and Counter(self.text.values())[self.text[first]] == 1:
            return self.text[first]
        if not most or len(tiles) < _MANY:
            return core
        if most == len(tiles):
            return f"{self.text[first]}{self._direction(tiles, first)} ({core})"
        return f"{self.text[first]}, {self.text[others[0][0]]} ({core})" if others else core

    def _direction(self, tiles: Indices, region: str) -> str:
        if not self.zones.located:
            return ""
        x, y = self.zones.xy
        if region not in self.box:
            inside = np.array([r == region for r in (() if self.of is None else self.of)], bool)
            self.box[region] = [(float(c[inside].mean()), float(np.ptp(c[inside]))) for c in (x, y)]
        (middle_x, wide), (middle_y, high) = self.box[region]
        east, north = float(x[tiles].mean()) - middle_x, float(y[tiles].mean()) - middle_y
        if np.hypot(east, north) < 0.05 * max(wide, high, 1.0):
            return " / center"
        return f" / {_WINDS[round(float(np.arctan2(north, east)) / (np.pi / 4)) % 8]}"


def _label(name: str, tiles: Indices, of_tile: Sequence[str], weight: Sequence[float], regions: _Regions) -> str:
    main = min(tiles.tolist(), key=lambda tile: (-weight[tile], tile))
    core = f"{of_tile[main]} + {len(tiles) - 1}"
    end = _suffix(name)
    text = regions.named(tiles, core)
    return f"{text if len(text) + len(end) <= MAX_LENGTH else core}{end}"


def _suffix(name: str) -> str:
    """Return the end of an area's id in brackets; nothing for a node of a tree, which has no other area's tiles."""
    return "" if re.fullmatch(r"_*area-\d+", name) else f" [{_end(name)}]"


def _end(name: str) -> str:
    """Return the end of an area's id: its number, or a digest of its tiles."""
    return name.replace("-to-", "-to ").rsplit("-", 1)[-1][-12:]


def _without_repeats(labels: list[str], names: Labels) -> list[str]:
    often = Counter(labels)
    return [
        f"{_cut(label, 40)} [{_end(str(name))}]" if often[label] > 1 else label
        for label, name in zip(labels, names, strict=True)
    ]


def _cut(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else f"{text[: length - 1].rstrip()}…"
