"""Readable names of areas, from the names of their zones: "Astoria + 3", "Queens", "Whole map".

"Astoria + 3" is an area of four zones, and Astoria is the one nearest to its geometric middle. Units of the user's own levels
(`--hierarchy` with a table) come first: an area that is such a unit has its name.

A name depends on the tiles of its area, on its id and on the public zones, never on trips: it reveals nothing that the list of
tiles does not show, and an area has one name in all releases over the same zones. Only where areas overlap in a way that no tree
does, two areas of a release may get one name; then both get the end of their ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Indices, Labels
from crowdveil.model.zones import Zones

MAX_LENGTH = 60
WHOLE_MAP = "Whole map"
_ZONE_LENGTH, _REGION_LENGTH, _UNIT_LENGTH = 30, 14, 32
_TIE_M = 1.0
"""Zones whose distances from a middle differ by less are equally near: the first of them gives the name."""


def area_labels(areas: Areas) -> list[str]:
    """Return the readable name of each area, all different and of at most 60 characters."""
    zones, of_tile, alone = areas.zones, zone_labels(areas.zones, _ZONE_LENGTH), zone_labels(areas.zones)
    weight, named = _weights(zones), _named_sets(zones, of_tile, alone)
    labels = []
    for i, name in enumerate(areas.names):
        tiles = np.sort(areas.tiles[areas.offsets[i] : areas.offsets[i + 1]])
        if len(tiles) == 1:
            labels.append(alone[tiles[0]])
            continue
        label = named.get(_key(tiles)) or f"{of_tile[_middle_tile(zones, tiles, weight)]} + {len(tiles) - 1}"
        labels.append(f"{label}{_suffix(str(name))}")
    return _without_repeats(labels, areas.names)


def explained(names: Iterable[str]) -> str:
    """Return a sentence that explains the notation of names by one of them; empty if none has several zones."""
    for name in names:
        if found := re.fullmatch(r"(.+) \+ (\d+)", name):
            return f"{name} is an area of {int(found[2]) + 1:,} zones around {found[1]}."
    return ""


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


def _named_sets(zones: Zones, of_tile: Sequence[str], alone: Sequence[str]) -> dict[bytes, str]:
    """Return the labels of units, of regions and of the whole map, by their sorted tiles; units come first."""
    regions = np.full(len(zones), None, dtype=object) if zones.regions is None else zones.regions
    by_region: dict[str, list[int]] = {}
    for tile, region in enumerate(regions):
        if region is not None:
            by_region.setdefault(str(region), []).append(tile)
    text = {name: _cut(name, _REGION_LENGTH) for name in by_region}
    often = Counter([*text.values(), *set(of_tile)])
    found = {_key(np.array(tiles, np.int32)): text[name] for name, tiles in by_region.items() if often[text[name]] == 1}
    found[_key(np.arange(len(zones), dtype=np.int32))] = WHOLE_MAP
    return found | _unit_labels(zones, (*of_tile, *alone))


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
    found: dict[bytes, str] = {}
    for label, (_, tiles) in zip(labels, zones.units, strict=True):
        found.setdefault(_key(np.sort(tiles).astype(np.int32)), label)
    return found


def _key(tiles: Indices) -> bytes:
    """Return sorted tiles as a key."""
    return tiles.astype(np.int32).tobytes()


def _weights(zones: Zones) -> Floats:
    """Return the size of each zone; equal sizes where there are no outlines."""
    size = zones.area_m2 if zones.located else np.ones(len(zones))
    weights: Floats = np.where(np.isfinite(size) & (size > 0), size, 1.0)
    return weights


def _middle_tile(zones: Zones, tiles: Indices, weight: Floats) -> int:
    """Return the tile nearest to the geometric middle of some sorted tiles; the first where positions are unknown."""
    if not zones.located:
        return int(tiles[0])
    x, y = (values[tiles] - np.average(values[tiles], weights=weight[tiles]) for values in zones.xy)
    away = np.hypot(x, y)
    return int(tiles[np.argmax(away < away.min() + _TIE_M)])


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
