"""Maps of one zone: where its trips go, or come from, in a release, and in the original for comparison. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

Direction = Literal["destinations", "origins"]
GRAY = (
    "trips; gray: none published, which is not 0",
    "trips; gray: none; in the release none published, which is not 0",
)
NOTHING, CHOSEN = "#e3e7ea", "#d55e00"


def released_trips(written: WrittenRelease, zones: Zones, zone: str, direction: Direction) -> Floats:
    """Return the trips between a zone and each zone, each row spread evenly over its tiles; NaN where nothing was published.

    A zone without published trips may have suppressed ones: it is not 0.
    """
    own = _index(zones, zone)
    name = zones.ids[own]
    near, far = (
        ("origin_area", "destination_area") if direction == "destinations" else ("destination_area", "origin_area")
    )
    tile_of = np.array([zones.index_of(tile) for tile in written.tile_names], np.int64)
    if np.any(tile_of < 0):
        raise InputError(
            Option("zones"), "some tiles of the release are not among them; give the zones of the release."
        )
    tiles, volume = written.area_tiles, written.column("volume").astype(np.float64)
    number = written.tile_names.index(name) if name in written.tile_names else -1
    inside = np.array([number in area for area in map(set, tiles)], np.bool_)
    trips, known = np.zeros(len(zones)), np.zeros(len(zones), np.bool_)
    here, there = written.area_numbers(near), written.area_numbers(far)
    for row in np.flatnonzero(inside[here]) if len(inside) else []:
        ends = tile_of[tiles[there[row]]]
        trips[ends] += volume[row] / (len(tiles[here[row]]) * len(ends))
        known[ends] = True
    return np.where(known, trips, np.nan)


def original_trips(flows: Flows, zone: str, direction: Direction) -> Floats:
    """Return the original trips between a zone and each zone; NaN where there are none. Confidential."""
    own = _index(flows.zones, zone)
    near, far = (flows.origin, flows.destination) if direction == "destinations" else (flows.destination, flows.origin)
    trips = np.bincount(far[near == own], flows.volume[near == own], len(flows.zones)).astype(np.float64)
    return np.where(trips > 0, trips, np.nan)


def _index(zones: Zones, zone: str) -> int:
    index = zones.index_of(zone)
    if index < 0:
        raise ParameterError(Option("zone"), f"there is no zone {zone!r} among the zones; name one of them.")
    return index


def draw_zone(
    zones: Zones, zone: str, direction: Direction, released: Floats, original: Floats | None, file: Path
) -> None:
    """Draw one map, or two with the original on the left, with one scale of colors."""
    from matplotlib.colors import LogNorm

    panels = (
        [("release", released)] if original is None else [("original: confidential", original), ("release", released)]
    )
    values = np.concatenate([v[np.isfinite(v) & (v > 0)] for _, v in panels])
    if not len(values):
        raise InputError(direction, "nothing was published of this zone, so there is nothing to draw.")
    low, high = float(values.min()), float(values.max())
    norm = LogNorm(low, high if high > low else low * 1.01)
    figure = new_figure(1 + 5 * len(panels), 5)
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    scales = [
        _tiles(axis, zones, trips, norm, _index(zones, zone)) for axis, (_, trips) in zip(axes, panels, strict=True)
    ]
    for axis, (title, _) in zip(axes, panels, strict=True):
        axis.set_title(title, fontsize=10)
    side = "to" if direction == "destinations" else "from"
    figure.colorbar(scales[0], ax=axes.tolist(), shrink=0.7, label=GRAY[original is not None])
    figure.suptitle(
        f"Trips {'from' if side == 'to' else 'to'} zone {zone}, by the zone that they go {side}", fontsize=11
    )
    figure.savefig(file)


def _tiles(axis: Any, zones: Zones, trips: Floats, norm: Any, own: int) -> Any:
    """Draw zones in degrees, with the proportions of their latitude; return what the scale of colors belongs to."""
    import shapely
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PathCollection
    from matplotlib.path import Path as Outline

    scale = ScalarMappable(norm, colormaps["viridis_r"])
    colors = [scale.to_rgba(value) if np.isfinite(value) and value > 0 else NOTHING for value in trips.tolist()]
    shapes = zones.outlines(np.arange(len(zones), dtype=np.int32))
    if shapely.get_type_id(shapes[own]) == 0:
        axis.scatter(zones.lon, zones.lat, c=colors, s=14)
        axis.plot(zones.lon[own], zones.lat[own], "o", markerfacecolor="none", markeredgecolor=CHOSEN, markersize=9)
    else:
        paths = []
        for shape in shapes:
            rings = [
                Outline(np.asarray(ring.coords))
                for part in shapely.get_parts(shape)
                for ring in (part.exterior, *part.interiors)
            ]
            paths.append(Outline.make_compound_path(*rings))
        edges = ["#ffffff"] * len(zones)
        widths = [0.3] * len(zones)
        edges[own], widths[own] = CHOSEN, 2.0
        axis.add_collection(PathCollection(paths, facecolors=colors, edgecolors=edges, linewidths=widths))
        axis.autoscale_view()
    axis.set_aspect(1 / max(np.cos(np.radians(float(np.mean(zones.lat)))), 0.05))
    axis.set_axis_off()
    return scale
