"""Promises about released trajectories, checked on the written table."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind
from crowdveil.io.release import TRAJECTORY_COLUMNS, WrittenRelease


class WellFormedTrajectories(Guarantee):
    """The file holds what a release of trajectories holds, and nothing else; ids are new."""

    name: ClassVar[str] = "well-formed-trajectories"
    kind: ClassVar[Kind] = "structure"

    def statement(self) -> str:
        """The promise in one sentence."""
        return (
            "The file has the columns of a release and no others; trajectories are numbered 1, 2, …, in order of time."
        )

    def check(self, written: WrittenRelease) -> Finding:
        """Look at columns, numbering, order and coordinates."""
        table, faults = written.data, []
        if not set(TRAJECTORY_COLUMNS) <= set(table.column_names) <= {*TRAJECTORY_COLUMNS, "user_id"}:
            return Finding(False, "columns are missing or more than they should be.")
        if any(table[c].null_count for c in table.column_names):
            return Finding(False, "values are missing.")
        number, t = written.column("trajectory_id"), written.column("timestamp")
        if len(number) and (number[0] != 1 or not np.isin(np.diff(number), (0, 1)).all()):
            faults.append("trajectories are not numbered 1, 2, … in the order of the rows")
        if np.any((np.diff(t) < 0) & (np.diff(number) == 0)):
            faults.append("times fall inside a trajectory")
        lon, lat = written.column("lon"), written.column("lat")
        if not (np.all(np.abs(lon) <= 180) and np.all(np.abs(lat) <= 90)):
            faults.append("a position is off the globe")
        if "user_id" in table.column_names:
            faults += self._people(number, written.column("user_id"))
        return Finding(not faults, "; ".join(faults) + "." if faults else f"{counted(len(table), 'point')} looked at.")

    @staticmethod
    def _people(
        number: np.ndarray[tuple[int], np.dtype[np.int64]], user: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> list[str]:
        faults = []
        if np.any((np.diff(number) == 0) & (np.diff(user) != 0)):
            faults.append("a trajectory has two people")
        seen = np.unique(user)
        if len(seen) and (seen[0] != 1 or seen[-1] != len(seen)):
            faults.append("people are not numbered 1, 2, …")
        return faults


class LocationsOnTileCentres(Guarantee):
    """No exact position leaves: each is the centre of a tile in the list of areas."""

    name: ClassVar[str] = "locations-on-tile-centres"
    kind: ClassVar[Kind] = "structure"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "Every published position is the centre of a tile in the list of areas."

    def check(self, written: WrittenRelease) -> Finding:
        """Look each position up among the centres."""
        centres = set(written.area_centres)
        positions = set(zip(written.column("lon").tolist(), written.column("lat").tolist(), strict=True))
        strange = len(positions - centres)
        return Finding(strange == 0, f"{counted(len(positions), 'position')} looked at, {strange:,} are no centre.")
