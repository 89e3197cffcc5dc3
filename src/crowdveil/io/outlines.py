"""Outlines of areas of several tiles. Tiles are divided into faces along all of their borders once, and areas join whole faces.

Borders of neighbors in a file rarely agree in every vertex. A union that repairs them takes most of a small run where tiles are
detailed, and most tiles are in several areas.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from crowdveil.io.geojson import GRID, union_outline
from crowdveil.model.arrays import Ints, Labels

POLYGONS = (3, 6)
"""Types of shapes that have faces: polygons and multipolygons."""


class TileFaces:
    """Outlines of sets of tiles.

    Parameters
    ----------
    shapes
        Outlines of tiles, on the grid of written decimals.
    """

    def __init__(self, shapes: Labels) -> None:
        import shapely

        self._shapes = shapes
        self._plain = bool(np.all(np.isin(shapely.get_type_id(shapes), POLYGONS)))

    @cached_property
    def _faces(self) -> tuple[Labels, list[Ints]]:
        """The faces between all borders, and those in each tile."""
        import shapely

        borders = shapely.union_all(shapely.boundary(self._shapes), grid_size=GRID)
        faces = shapely.get_parts(shapely.polygonize(shapely.get_parts(borders)))
        inside, tile = shapely.STRtree(self._shapes).query(shapely.point_on_surface(faces), predicate="within")
        inside = inside[np.argsort(tile, kind="stable")]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(tile, minlength=len(self._shapes)))])
        return faces, [inside[low:high] for low, high in pairwise(bounds.tolist())]

    def outline(self, tiles: Ints) -> Any:
        """Return the outline of tiles together, given by their positions, on the grid."""
        import shapely

        if self._plain:
            faces, of_tile = self._faces
            joined = np.unique(np.concatenate([of_tile[tile] for tile in tiles]))
            try:
                outline = shapely.coverage_union_all(faces[joined])
            except shapely.errors.GEOSException:
                outline = None
            # A tile may be smaller than the grid, so that it has no face.
            if outline is not None and outline.is_valid and not outline.is_empty:
                return outline
        return union_outline(self._shapes[tiles])
