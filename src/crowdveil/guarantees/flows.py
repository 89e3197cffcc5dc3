"""Promises about released flows, checked on the written table."""

from __future__ import annotations

import itertools
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind
from crowdveil.io.release import FLOW_COLUMNS, WrittenRelease
from crowdveil.model.arrays import Ints, Mask
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
        withheld = written.steps["withheld"].drop_null().to_numpy()
        # A total of fewer than k trips cannot have been made by k people, whatever was counted.
        told = int(((withheld > 0) & (withheld < self.k)).sum())
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
        """Look at each time step for a pair of tiles that stands twice."""
        step, areas = written.step_numbers(), _Tiles(written)
        origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
        order = np.argsort(step, kind="stable")
        bounds = np.searchsorted(step[order], np.arange(step.max(initial=-1) + 2))
        crossed = 0
        for low, high in itertools.pairwise(bounds):
            rows = order[low:high]
            crossed += not areas.disjoint(origin[rows], destination[rows])
        return Finding(
            crossed == 0, f"{counted(len(step), 'row')} looked at, {crossed:,} time steps have a pair twice."
        )


class _Tiles:
    """The tiles of all areas, one after the other, and which areas have a tile in common."""

    MOST_AREAS = 4000
    """Above so many areas no table of all pairs of areas is made."""

    def __init__(self, written: WrittenRelease) -> None:
        self.size = np.array([len(tiles) for tiles in written.area_tiles], np.int64)
        self.first = np.cumsum(self.size) - self.size
        self.tiles = np.concatenate([np.zeros(0, np.int64), *written.area_tiles])
        self.count = max(written.tile_count, 1)
        self.meet = self._meet() if len(self.size) <= self.MOST_AREAS else None

    def _meet(self) -> Mask:
        holds = np.zeros((len(self.size), self.count), np.float32)
        holds[np.repeat(np.arange(len(self.size)), self.size), self.tiles] = 1
        common: Mask = holds @ holds.T > 0
        return common

    def disjoint(self, origin: Ints, destination: Ints) -> bool:
        """Whether no pair of tiles lies in two of the rows, by the shorter of two ways.

        Either every two rows are held against each other, or all pairs of tiles are written out and counted.
        """
        each = self.size[origin] * self.size[destination]
        if self.meet is not None and len(each) ** 2 < 4 * each.sum():
            both = self.meet[origin[:, None], origin[None, :]] & self.meet[destination[:, None], destination[None, :]]
            return int(both.sum()) == len(each)  # each row meets itself
        return len(np.unique(self._pairs(origin, destination, each))) == int(each.sum())

    def _pairs(self, origin: Ints, destination: Ints, each: Ints) -> Ints:
        """Every pair of a tile of the origin and a tile of the destination, of every row, as a number."""
        row = np.repeat(np.arange(len(each)), each)
        within = np.arange(len(row)) - np.repeat(np.cumsum(each) - each, each)
        wide = self.size[destination][row]
        from_tile = self.tiles[self.first[origin][row] + within // wide]
        to_tile = self.tiles[self.first[destination][row] + within % wide]
        numbers: Ints = from_tile * self.count + to_tile
        return numbers


class GeneralisationLimit(Guarantee):
    """Flows to several tiles do not cover more tiles than a limit."""

    name: ClassVar[str] = "generalisation-limit"
    kind: ClassVar[Kind] = "structure"

    tiles: float = Field(gt=0)

    def statement(self) -> str:
        """The promise in one sentence."""
        return f"Origin and destination of a flow to more than one tile have at most {self.tiles:g} tiles together."

    def check(self, written: WrittenRelease) -> Finding:
        """Add up the tiles of each row."""
        size = np.array([len(tiles) for tiles in written.area_tiles], np.int64)
        to = size[written.area_numbers("destination_area")]
        over = int(((to > 1) & (size[written.area_numbers("origin_area")] + to > self.tiles)).sum())
        return Finding(over == 0, f"{counted(len(to), 'row')} looked at, {over:,} are larger.")


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
            faults.append("columns are missing or more than they should be")
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
        return Finding(not faults, "; ".join(faults) + "." if faults else f"{counted(len(table), 'row')} looked at.")
