"""Promises about released flows, checked on the written table."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind
from crowdveil.guarantees.original import step_volumes, volumes_by_step
from crowdveil.guarantees.outlines import broken_outlines
from crowdveil.guarantees.painting import blocks, by_step
from crowdveil.guarantees.runs import Runs
from crowdveil.io.written import FLOW_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows, trips_within
from crowdveil.model.release import STATES


class FlowKAnonymity(Guarantee):
    """Every row, and every withheld total that is told, is made by at least k."""

    name: ClassVar[str] = "flow-k-anonymity"
    kind: ClassVar[Kind] = "privacy"

    k: int = Field(ge=1)
    counts: Literal["people", "trips"]

    def statement(self) -> str:
        """The promise in one sentence."""
        crowd = f"is made by at least {self.k} people" if self.counts == "people" else f"holds at least {self.k} trips"
        return f"Every published flow, and every withheld total that is given, {crowd}."

    def check(self, written: WrittenRelease) -> Finding:
        """Look at each row's crowd, and at each total of a time step."""
        crowd = written.column(self.counts)
        small = int((crowd < self.k).sum())
        withheld, given = written.listed("withheld")
        # A total of fewer than k trips cannot have been made by k people, whatever was counted.
        told = int((given & (withheld > 0) & (withheld < self.k)).sum())
        detail = f"{counted(len(crowd), 'row')} looked at, {small:,} below k; {told:,} withheld totals below k."
        return Finding(small == 0 and told == 0, detail)


class DisjointFlows(Guarantee):
    """No pair of tiles lies in two rows of a time step: nobody is counted twice, nothing can be subtracted."""

    name: ClassVar[str] = "disjoint-flows"
    kind: ClassVar[Kind] = "privacy"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "In each time step, every pair of tiles lies in at most one published flow."

    def check(self, written: WrittenRelease) -> Finding:
        """Paint the pairs of tiles of each row, and look for one that is painted twice in a time step."""
        step = written.row_steps()[1]
        origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
        if min(origin.min(initial=0), destination.min(initial=0)) < 0:
            return Finding(False, "rows name an area that is not in the list of areas.")
        areas = len(written.features)
        named = np.bincount(origin, minlength=areas) + np.bincount(destination, minlength=areas)
        runs = Runs.of(written.area_tiles, written.tile_count, named)
        _, rows = by_step(step, origin, destination)
        crossed = sum(int(block.painted().crossed.sum()) for block in blocks(runs, *rows))
        return Finding(
            crossed == 0, f"{counted(len(step), 'row')} looked at, {crossed:,} time steps have a pair twice."
        )


class WithheldBudget(Guarantee):
    """Not more is withheld of a time step than was allowed."""

    name: ClassVar[str] = "withheld-budget"
    kind: ClassVar[Kind] = "structure"

    suppress: float = Field(ge=0)
    k: int = Field(ge=1)

    def statement(self) -> str:
        """The promise in one sentence."""
        most = f"{self.suppress:.0f} trips" if self.suppress > 1 else f"{100 * self.suppress:g} % of the volume"
        return f"Of each time step at most {most} is withheld, unless its crowd is below {self.k:,} in all."

    def check(self, written: WrittenRelease) -> Finding:
        """Compare each withheld total that is told with the volume of its time step."""
        withheld, told = written.listed("withheld")
        published = self._published(written)
        over = ~self._within(withheld, published + withheld)  # what is not told is 0 here
        # Not told are fewer than k trips, where trips are counted and each is one: then even k - 1 may be few enough.
        trips = "trips" in written.data.column_names and np.array_equal(
            written.column("trips"), written.column("volume")
        )
        most = np.full(len(withheld), self.k - 1)
        open_ = ~told & ~(trips & self._within(most, published + most))
        detail = f"{counted(len(told), 'time step')} looked at, more is withheld in {int(over.sum()):,}"
        detail += f"; not told in {counted(int(open_.sum()), 'time step')}." if open_.any() else "."
        return Finding(not over.any(), detail, looked=bool(over.any()) or not (len(told) and open_.all()))

    def check_with(self, written: WrittenRelease, original: Flows) -> Finding:
        """Compare what is missing of each time step of the original, told or not, with its volume."""
        published, strange = volumes_by_step(written, original)
        volume = step_volumes(original)
        over = ~self._within(volume - published, volume)
        whole = over & (published == 0)
        for step in np.flatnonzero(whole).tolist():
            over[step] = self._crowd(original, step) >= self.k
        small = int((whole & ~over).sum())
        detail = f"{counted(len(over), 'time step')} looked at, more is withheld in {int(over.sum()):,}"
        detail += f"; {small:,} below k are withheld whole" if small else ""
        detail += f"; {strange:,} are not in the original" if strange else ""
        return Finding(not over.any() and not strange, f"{detail}.", with_original=True)

    def _within(self, withheld: Ints, volume: Ints) -> Mask:
        most = [trips_within(self.suppress, v) for v in volume.tolist()]
        within: Mask = withheld <= np.array(most, np.int64)
        return within

    @staticmethod
    def _published(written: WrittenRelease) -> Ints:
        """What the rows of each listed time step add up to: the total that is listed beside it proves nothing."""
        times, number = written.row_steps()
        listed, place = written.listed_steps()
        volume = np.zeros(len(times) + 1, np.int64)
        np.add.at(volume, number, written.column("volume"))
        at = np.searchsorted(times, listed)
        at[~np.isin(listed, times)] = len(times)
        total: Ints = volume[at][place]
        return total

    @staticmethod
    def _crowd(original: Flows, step: int) -> int:
        """People of a time step; where it is not known who is behind flows, as many as there are for sure."""
        rows = slice(original.offsets[step], original.offsets[step + 1])
        if original.counts == "trips":
            return int(original.people[rows].sum())
        if original.member is None or original.member_offsets is None:
            return int(original.people[rows].max(initial=0))
        first, last = original.member_offsets[rows.start], original.member_offsets[rows.stop]
        return len(np.unique(original.member[first:last]))


class WellFormedFlows(Guarantee):
    """The files hold what a release of flows holds, and nothing else."""

    name: ClassVar[str] = "well-formed-flows"
    kind: ClassVar[Kind] = "structure"

    def statement(self) -> str:
        """The promise in one sentence."""
        return "The files have the columns of a release and no others; areas, states, times and volumes are in order."

    def check(self, written: WrittenRelease) -> Finding:
        """Look at columns, areas, states and volumes."""
        table, faults = written.data, []
        extra = set(table.column_names) - {*FLOW_COLUMNS, "people", "trips"}
        if extra or not set(FLOW_COLUMNS) <= set(table.column_names):
            return Finding(False, "columns are missing or more than they should be.")
        if {"people", "trips"} <= extra.union(table.column_names):
            faults.append("two columns count the crowd")
        if any(table[c].null_count for c in table.column_names if c != "t"):
            faults.append("values are missing")
        if not set(table["state"].unique().to_pylist()) <= set(STATES):
            faults.append("a state is unknown")
        if len(table) and written.column("volume").min() < 1:
            faults.append("a volume is below 1")
        if (
            min(
                written.area_numbers("origin_area").min(initial=0),
                written.area_numbers("destination_area").min(initial=0),
            )
            < 0
        ):
            faults.append("a row names an area that is not in the list of areas")
        if any(len(tiles) == 0 for tiles in written.area_tiles):
            faults.append("an area has no tiles")
        if any(len(np.unique(tiles)) < len(tiles) for tiles in written.area_tiles):
            faults.append("an area has a tile twice")
        if len({feature["properties"]["area"] for feature in written.features}) < len(written.features):
            faults.append("two areas have one name")
        if broken := broken_outlines(written.features):
            faults.append(f"{counted(broken, 'area')} with an outline that crosses itself or leaves the globe")
        return Finding(not faults, "; ".join(faults) + "." if faults else f"{counted(len(table), 'row')} looked at.")
