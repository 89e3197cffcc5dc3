"""A guarantee about the steps of released trajectories from tile to tile, checked on the written table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.trajectories import OTHER_NUMBER, WHOSE
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.projection import LocalProjection


class SharedTilePairs(Guarantee):
    """No step from one tile to the next is made by few alone."""

    name: ClassVar[str] = "shared-tile-pairs"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {"steps": "sum", "small": "sum", "whose": "max", "other_number": "max"}
    least: int
    """Fewest that make a step."""
    tile_size_m: float
    """Side of the tiles."""
    lon0: float
    """Longitude of a corner of tiles, around which meters are measured."""
    lat0: float
    """Its latitude."""
    counts: Literal["people", "trajectories"]
    """What is counted."""

    def statement(self) -> str:
        """The guarantee in one sentence."""
        return (
            f"Every step from one square of {self.tile_size_m:g} m to the next one that a published trajectory has points in is "
            f"made by the trajectories of at least {self.least:,} {self.counts}."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Count the trajectories of each step. The files do not tell whose they are."""
        number = written.column("trajectory_id")
        steps, small = self._counted(written, number)
        whose = self.counts == "people" and steps > 0 and not small
        return self.judged(small > 0, {"steps": steps, "small": small, "whose": whose}, open_=whose)

    def check_behind(self, written: WrittenRelease, person: Ints) -> Finding:
        """Count the people of each step."""
        number = written.column("trajectory_id")
        if int(number.max(initial=0)) != len(person):
            return self.judged(True, {"other_number": 1}, with_original=True)
        if self.counts != "people":
            return self.check(written)
        steps, small = self._counted(written, person[number - 1])
        return self.judged(small > 0, {"steps": steps, "small": small}, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Say how many steps are made by too few."""
        if counts["other_number"]:
            return OTHER_NUMBER
        what = "people" if with_original else "trajectories"
        said = f"{counted(counts['steps'], 'step')} from tile to tile, {counts['small']:,} with fewer {what}"
        return f"{said}; {WHOSE}." if counts["whose"] else f"{said}."

    def _counted(self, written: WrittenRelease, who: Ints) -> tuple[int, int]:
        """How many steps there are, and how many are made by too few."""
        x, y = LocalProjection(self.lon0, self.lat0).to_plane(written.column("lon"), written.column("lat"))
        tile = np.column_stack([np.floor(x / self.tile_size_m), np.floor(y / self.tile_size_m)])
        number = written.column("trajectory_id")
        step = np.flatnonzero((tile[1:] != tile[:-1]).any(axis=1) & (number[1:] == number[:-1]))
        _, pair = np.unique(np.column_stack([tile[step], tile[step + 1]]), axis=0, return_inverse=True)
        made_by = np.unique(np.column_stack([pair.reshape(-1), who[step]]), axis=0)[:, 0]
        crowd = np.bincount(made_by)
        return len(crowd), int((crowd < self.least).sum())
