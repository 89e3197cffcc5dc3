"""Measure how far published trips are generalized: tiles, boxes, areas on the ground, and lengths of intervals."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
import shapely
from pydantic import Field

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows
from crowdveil.params import Params


class CostParams(Params):
    """Parameters of the generalization error with suppressed trips."""

    delta: float = Field(0.01, ge=0, le=1)
    """Cost of a suppressed trip, as a share of one generalized to the whole map at both ends; 1 counts it as such a trip."""


def total(compared: OdComparison) -> Floats:
    """Return Σ (|o| + |d|) v over the rows."""
    return compared.of_rows((compared.origin_size + compared.destination_size) * compared.release.volume)


def mean(compared: OdComparison) -> Floats:
    """Return G of a published trip."""
    return ratio(total(compared), compared.published)


def with_suppressed(compared: OdComparison, params: CostParams) -> Floats:
    """Return G plus 2δ|U| for each suppressed trip."""
    suppressed = compared.volume - compared.published
    return total(compared) + 2 * params.delta * len(compared.original.zones) * suppressed


def tiles_met(areas: Areas) -> Ints:
    """Count the tiles that intersect the rectangle around the centroids of each area; without outlines, those with their
    centroid in it.
    """
    zones = areas.zones
    x, y = zones.xy
    shapes = shapely.points(x, y) if zones.polygons is None else zones.projection.polygons_to_plane(zones.polygons)
    starts = areas.offsets[:-1]
    ends = (reach.reduceat(axis[areas.tiles], starts) for reach in (np.minimum, np.maximum) for axis in (x, y))
    area, _ = shapely.STRtree(shapes).query(shapely.box(*ends), predicate="intersects")
    # A box around one centroid has no interior, and may intersect nothing: an area has its own tiles in any case.
    return np.maximum(np.bincount(area, minlength=len(areas)), areas.size)


def mean_of_boxes(compared: OdComparison) -> Floats:
    """Return the tiles intersected by the origin and by the destination of a published trip."""
    release = compared.release
    if len(release.areas) == 0 or not release.areas.zones.located:
        return np.full(compared.groups, np.nan)
    met = compared.once("tiles_met", lambda: tiles_met(release.areas))
    return ratio(
        compared.of_rows((met[release.origin] + met[release.destination]) * release.volume), compared.published
    )


LENGTHS = ("up to 1 h", "up to 2 h", "up to 4 h", "up to 12 h", "up to 24 h", "longer")
_LONGEST = np.array([1.0, 2.0, 4.0, 12.0, 24.0])


def length_classes(hours: Floats) -> Ints:
    """Return the position of each length in `LENGTHS`."""
    classes: Ints = np.searchsorted(_LONGEST, hours).astype(np.int64)
    return classes


def mean_hours(compared: OdComparison) -> Floats:
    """Return the hours between start and end of the row of a published trip; NaN where the data have no times."""
    return ratio(compared.of_rows(compared.release.hours * compared.release.volume), compared.published)


def generalization_by_hours(compared: OdComparison) -> Floats:
    """Return Ḡ of the published trips by the length of their rows; NaN where there are none of a length."""
    release = compared.release
    if release.step_s is None:
        return np.full((compared.groups, len(LENGTHS)), np.nan)
    column = length_classes(release.hours)
    tiles = (compared.origin_size + compared.destination_size) * release.volume
    of_lengths = [
        ratio(
            compared.of_rows(np.where(column == i, tiles, 0)),
            compared.of_rows(np.where(column == i, release.volume, 0)),
        )
        for i in range(len(LENGTHS))
    ]
    return np.column_stack(of_lengths)


def mean_size(compared: OdComparison, end: Literal["origin", "destination"], unit: Literal["km²", "tiles"]) -> Floats:
    """Return the mean size of the areas at one end over the trips in rows; NaN in km² where the tiles have no outlines."""
    release = compared.release
    sizes: Floats | Ints = release.areas.size if unit == "tiles" else release.areas.area_m2 / 1e6
    return ratio(compared.of_rows(sizes[getattr(release, end)] * release.volume), compared.published)


MEASURES = (
    Measure(
        "generalization", "mean generalization error", "tiles", "lower", Flows, mean,
        "Tiles of the origin and of the destination together, mean over published trips; 2 means single tiles.", "Ḡ",
    ),
    Measure(
        "generalization-cost", "generalization error with suppressed trips", "tiles × trips", "lower", Flows,
        with_suppressed,
        "Tiles of the origin and of the destination together, summed over published trips, and for each suppressed trip the "
        "share delta of that of a trip from the whole map to the whole map.", "G_δ", params=CostParams,
    ),
    Measure(
        "generalization-boxes", "mean generalization error of boxes", "tiles", "lower", Flows, mean_of_boxes,
        "Tiles that the rectangles around origin and destination intersect, mean over published trips: the count of papers for "
        "methods without a tree, such as mondrian and glove.", "Ḡ□",
    ),
    Measure(
        "mean-duration", "mean length of intervals", "h", "lower", Flows, mean_hours,
        "Hours between start and end of a row, mean over published trips: the length of a time step, or more where rows have "
        "intervals of time (joint with adaptive intervals).",
    ),
    Measure(
        "generalization-by-duration", "mean generalization error by length of intervals", "tiles", "neither", Flows,
        generalization_by_hours,
        "Tiles of the origin and of the destination together, mean over the published trips whose rows have this length.",
        parts=LENGTHS,
    ),
    Measure(
        "origin-area", "mean area of origins", "km²", "lower", Flows,
        partial(mean_size, end="origin", unit="km²"),
        "Area of the origin, mean over published trips; needs zones with outlines.", "MAO",
    ),
    Measure(
        "destination-area", "mean area of destinations", "km²", "lower", Flows,
        partial(mean_size, end="destination", unit="km²"),
        "Area of the destination, mean over published trips; needs zones with outlines.", "MAD",
    ),
    Measure(
        "origin-tiles", "mean size of origins", "tiles", "lower", Flows,
        partial(mean_size, end="origin", unit="tiles"),
        "Tiles of the origin, mean over published trips.",
    ),
    Measure(
        "destination-tiles", "mean size of destinations", "tiles", "lower", Flows,
        partial(mean_size, end="destination", unit="tiles"),
        "Tiles of the destination, mean over published trips.",
    ),
)  # fmt: skip
