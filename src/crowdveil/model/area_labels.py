"""Readable names of areas, from the names of their zones: "Astoria + 3", "Queens / northwest (Astoria + 27)", "Queens".

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
_ZONE_LENGTH, _REGION_LENGTH = 30, 14
_MANY = 5
"""Tiles from which on a name has the region too."""
_WINDS = ("east", "northeast", "north", "northwest", "west", "southwest", "south", "southeast")


def area_labels(areas: Areas) -> list[str]:
    """Return the readable name of each area, all different and of at most 60 characters."""
    zones, of_tile, alone = areas.zones, zone_labels(areas.zones, _ZONE_LENGTH), zone_labels(areas.zones)
    weight = _weights(zones)
    regions = _Regions(zones, of_tile)
    labels = []
    for i, name in enumerate(areas.names):
        tiles = areas.tiles[areas.offsets[i] : areas.offsets[i + 1]]
        labels.append(alone[tiles[0]] if len(tiles) == 1 else _label(str(name), tiles, of_tile, weight, regions))
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


def _weights(zones: Zones) -> Sequence[float]:
    """Return the size of each zone; equal sizes where there are no outlines."""
    if not zones.located:
        return [1.0] * len(zones)
    size = zones.area_m2
    sizes: list[float] = np.where(np.isfinite(size), size, 1.0).round(3).tolist()
    return sizes


class _Regions:
    """The regions of zones, such as boroughs: their tiles, and names that no zone has."""

    def __init__(self, zones: Zones, of_tile: Sequence[str]) -> None:
        self.zones, self.of = zones, zones.regions
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
    end = "" if re.fullmatch(r"_*area-\d+", name) else f" [{_end(name)}]"
    text = regions.named(tiles, core)
    return f"{text if len(text) + len(end) <= MAX_LENGTH else core}{end}"


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
