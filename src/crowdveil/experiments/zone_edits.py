"""Crop zones to a part of the map, or split each into several, with the trips between them: to study how size matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.columns import find_column, need_column
from crowdveil.io.cropping import in_box, parse_box
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import open_source
from crowdveil.io.values import read_floats
from crowdveil.model.arrays import Floats, Ints, Labels
from crowdveil.model.projection import centroids
from crowdveil.model.tessellation import zones_at
from crowdveil.model.zones import Zones

Side = Literal["west", "east", "south", "north"]
SIDES: tuple[Side, ...] = ("west", "east", "south", "north")
SHARES = (0.4, 0.3, 0.2, 0.1)
"""Shares of the parts of a zone, as in the literature: unequal, so that the best areas are not the original zones."""
_MOST_PARTS = 100


def keep_zones(zones: Zones, *, bbox: str | None = None, keep: int | None = None, side: Side = "west") -> Zones:
    """Return the zones whose center is in a box (west,south,east,north), and of these the `keep` outermost on one side."""
    zones.need_location("cropped zones")
    if bbox is None and keep is None:
        raise ParameterError(
            Option("bbox"), Text("nothing is cropped. Give a box, or the number of zones with {keep}.")
        )
    inside = np.arange(len(zones))
    if bbox is not None:
        inside = np.flatnonzero(in_box(parse_box(bbox.split(",")), zones.lon, zones.lat))
    if keep is not None:
        if not 1 <= keep <= len(inside):
            raise ParameterError(Option("keep"), f"Expected a number from 1 to {len(inside):,}, the number of zones.")
        position = (zones.lon if side in ("west", "east") else zones.lat)[inside]
        order = np.argsort(position if side in ("west", "south") else -position, kind="stable")
        inside = np.sort(inside[order[:keep]])
    if len(inside) == 0:
        raise InputError(Option("bbox"), "no zone has its center in the box. Give another box.")
    return zones_at(zones, inside)


def split_zones(zones: Zones, parts: int = len(SHARES)) -> Zones:
    """Return each zone as several, named id.1, id.2 and so on: polygons are cut into equal areas, points are moved apart."""
    zones.need_location("split zones")
    if not 2 <= parts <= _MOST_PARTS:
        raise ParameterError(
            Option("shares"), f"Expected 2 to {_MOST_PARTS} parts, got {parts:,}. Choose another number."
        )
    ids = np.array([f"{name}.{part + 1}" for name in zones.ids for part in range(parts)], dtype=object)
    if zones.kind == "centroids":
        return Zones(ids, *_apart(zones, parts), kind="centroids")
    shapes = np.array([piece for shape in zones.shapes() for piece in _pieces(shape, parts)], dtype=object)
    return Zones(ids, *centroids(shapes), shapes, "polygons")


def keep_trips(data: Any, zones: Zones, **columns: str | None) -> pa.Table:
    """Return the rows of trips or flows that begin and end in one of the zones; `origin`, `destination` name their columns."""
    table, ends, _ = _read_ends(data, columns)
    known = pa.array([str(i) for i in zones.ids], pa.string())
    inside = np.logical_and(*(pc.is_in(table[end].cast(pa.string()), known).to_numpy() for end in ends))
    if not inside.any():
        raise InputError("no trip begins and ends in the zones that are left. Keep more zones.")
    return table.filter(pa.array(inside))


def split_trips(
    data: Any, zones: Zones, shares: Sequence[float] = SHARES, *, seed: int = 0, **columns: str | None
) -> pa.Table:
    """Return trips or flows between the parts of zones: origin and destination of each trip are drawn by the shares.

    `zones` are those before the split. A flow becomes up to as many rows as there are pairs of parts.
    """
    law, parts = _law(shares), len(shares)
    table, (origin, destination), volume = _read_ends(data, columns)
    names = {str(i) for i in zones.ids}
    for end in (origin, destination):
        if not names.issuperset(table[end].cast(pa.string()).to_pylist()):
            raise InputError(Option("trips"), f"column {end} has ids that are not among the zones. Fix or remove them.")
    rng = np.random.default_rng(seed)
    if volume is None:
        from_part, to_part = (rng.choice(parts, len(table), p=law) for _ in range(2))
    else:
        trips = _volumes(table, volume)
        drawn = rng.multinomial(trips, np.outer(law, law).ravel())
        row, pair = np.nonzero(drawn)
        table = table.take(pa.array(row))
        counts = pa.array(drawn[row, pair], pa.int64())
        table = table.set_column(table.column_names.index(volume), volume, counts)
        from_part, to_part = pair // parts, pair % parts
    for end, part in ((origin, from_part), (destination, to_part)):
        ids = [f"{name}.{p + 1}" for name, p in zip(table[end].cast(pa.string()).to_pylist(), part, strict=True)]
        table = table.set_column(table.column_names.index(end), end, pa.array(ids, pa.string()))
    return table


def parse_shares(text: str) -> tuple[float, ...]:
    """Return the shares of parts from text such as 0.4,0.3,0.2,0.1."""
    try:
        shares = tuple(float(part) for part in text.split(","))
    except ValueError:
        shares = ()
    _law(shares)
    return shares


def _law(shares: Sequence[float]) -> Floats:
    law = np.array(shares, np.float64)
    if not (2 <= len(law) <= _MOST_PARTS and np.all(law > 0) and abs(law.sum() - 1) < 1e-9):
        raise ParameterError(
            Option("shares"),
            f"Expected 2 to {_MOST_PARTS} shares above 0 with the sum 1, such as 0.4,0.3,0.2,0.1.",
        )
    return np.asarray(law / law.sum(), np.float64)


def _read_ends(data: Any, columns: dict[str, str | None]) -> tuple[pa.Table, tuple[str, str], str | None]:
    """Return trips or flows as a table, the columns of their ends, and that of volumes, None for trips."""
    source, notes = open_source(data), ReadNotes()
    origin, destination = (need_column(source, end, columns.get(end), notes) for end in ("origin", "destination"))
    volume = find_column(source, "volume", columns.get("volume"), notes)
    if volume is not None and find_column(source, "people", None, notes) is not None:
        raise InputError(
            source.name,
            "numbers of people cannot be split or cropped together with flows. Give the trips, or remove the column.",
        )
    return source.read(), (origin, destination), volume


def _volumes(table: pa.Table, column: str) -> Ints:
    values, bad = read_floats(table[column], f"column {column}")
    wrong = ~((values >= 0) & (values == np.floor(values)))
    if np.any(wrong if bad is None else wrong | bad):
        raise InputError(
            Option("trips"), f"column {column} has values that are not whole numbers of at least 0. Fix them."
        )
    return values.astype(np.int64)


def _apart(zones: Zones, parts: int) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of points around each zone, at a quarter of the distance to its nearest neighbor."""
    from scipy.spatial import cKDTree

    x, y = zones.xy
    points = np.column_stack([x, y])
    near = np.full(len(x), 400.0)
    if len(x) > 1:
        near = cKDTree(points).query(points, k=2)[0][:, 1]
    radius = np.where(near > 0, near, 400.0)[:, None] / 4
    angle = 2 * np.pi * (np.arange(parts) + 0.5) / parts
    return zones.projection.to_globe(
        (x[:, None] + radius * np.cos(angle)).ravel(), (y[:, None] + radius * np.sin(angle)).ravel()
    )


def _pieces(shape: Any, parts: int) -> Labels:
    """Return a polygon cut into parts of equal area, across its longer side first."""
    if parts == 1:
        return np.array([shape], dtype=object)
    west, south, east, north = shapely.bounds(shape).tolist()
    middle = np.cos(np.radians((south + north) / 2))
    by_x, first = (east - west) * middle >= north - south, parts // 2
    low, high = (west, east) if by_x else (south, north)
    wanted, total = first / parts, shapely.area(shape)
    for _ in range(40):
        cut = (low + high) / 2
        part = shapely.clip_by_rect(shape, west, south, *((cut, north) if by_x else (east, cut)))
        low, high = (cut, high) if shapely.area(part) < wanted * total else (low, cut)
    cut = (low + high) / 2
    boxes = (
        (shapely.box(west, south, cut, north), shapely.box(cut, south, east, north))
        if by_x
        else (shapely.box(west, south, east, cut), shapely.box(west, cut, east, north))
    )
    sides = [_polygons(shapely.intersection(shape, box)) for box in boxes]
    return np.array([*_pieces(sides[0], first), *_pieces(sides[1], parts - first)], dtype=object)


def _polygons(shape: Any) -> Any:
    """Return the polygons of a shape without the lines and points that an intersection may leave."""
    parts = [part for part in shapely.get_parts(shape) if part.geom_type == "Polygon"]
    return parts[0] if len(parts) == 1 else shapely.multipolygons(parts)
