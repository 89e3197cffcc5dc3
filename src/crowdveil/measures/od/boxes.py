"""Measure generalization where areas are no nodes of a tree: the tiles that their bounding boxes intersect."""

from __future__ import annotations

import numpy as np
import shapely

from crowdveil.measures.base import Measure, ratio
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.flows import Flows


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


def mean(compared: OdComparison) -> Floats:
    """Return the tiles intersected by the origin and by the destination of a published trip."""
    release = compared.release
    if len(release.areas) == 0 or not release.areas.zones.located:
        return np.full(compared.groups, np.nan)
    met = compared.once("tiles_met", lambda: tiles_met(release.areas))
    return ratio(
        compared.of_rows((met[release.origin] + met[release.destination]) * release.volume), compared.published
    )


MEASURES = (
    Measure(
        "generalization-boxes", "mean generalization error of boxes", "tiles", "lower", Flows, mean,
        "Tiles that the rectangles around origin and destination intersect, mean over published trips: the count of papers for "
        "methods without a tree, such as mondrian and glove.", "Ḡ□",
    ),
)  # fmt: skip
