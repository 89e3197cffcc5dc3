"""Check that steps of released trajectories from tile to tile are shared, on the written table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import WHOSE, CountedByPeople, Kind, Merge
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.projection import LocalProjection


class SharedTilePairs(CountedByPeople):
    """Every step from one tile to the next is made by several people."""

    name: ClassVar[str] = "shared-tile-pairs"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"steps": "sum", "small": "sum", "whose": "max", "other_number": "max"}
    from_data: ClassVar[tuple[str, ...]] = ("lon0", "lat0")
    min_group_size: int
    """Smallest number of people or trajectories that make a step."""
    tile_size_m: float
    """Side of the tiles, meters."""
    lon0: float
    """Longitude of a corner of tiles, the center of the projection."""
    lat0: float
    """Its latitude."""
    k_unit: Literal["people", "trajectories"]
    """Unit of the group size."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        return (
            f"Every step from one square of {self.tile_size_m:g} m to the next one with points of a published trajectory is "
            f"made by the trajectories of at least {self.min_group_size:,} {self.k_unit}."
        )

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many steps are made by too few."""
        what = "people" if with_original else "trajectories"
        said = f"{counted(counts['steps'], 'step')} from tile to tile, {counts['small']:,} with fewer {what}"
        return f"{said}; {WHOSE}." if counts["whose"] else f"{said}."

    def _count(self, written: WrittenRelease, owner: Ints) -> tuple[int, int]:
        """Return the number of steps, and of those made by too few."""
        x, y = LocalProjection(self.lon0, self.lat0).to_plane(written.column("lon"), written.column("lat"))
        tile = np.column_stack([np.floor(x / self.tile_size_m), np.floor(y / self.tile_size_m)])
        number = written.column("published_id")
        step = np.flatnonzero((tile[1:] != tile[:-1]).any(axis=1) & (number[1:] == number[:-1]))
        _, pair = np.unique(np.column_stack([tile[step], tile[step + 1]]), axis=0, return_inverse=True)
        made_by = np.unique(np.column_stack([pair.reshape(-1), owner[number[step] - 1]]), axis=0)[:, 0]
        size = np.bincount(made_by)
        return len(size), int((size < self.min_group_size).sum())
