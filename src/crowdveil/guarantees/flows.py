"""Check guarantees about released flows, on the written table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge, broken_outlines, faults_in, flags
from crowdveil.guarantees.intervals import INTERVAL_FAULTS, interval_faults, row_pieces
from crowdveil.guarantees.overlaps import Pairs, rows_of_pairs
from crowdveil.io.written_release import BOUND_COLUMNS, FLOWS, STEPS, WrittenRelease, has_columns
from crowdveil.model.release import STATES

_FAULTS = {
    "columns": "columns are missing, or there are others",
    "two_crowds": "two columns have a group size",
    "missing_values": "values are missing",
    "unknown_state": "a state is unknown",
    "small_volume": "a volume is below 1",
    "bounds": "a volume lies outside its confidence bounds, or one of these is missing or below 0",
    "unlisted_area": "a row names an area that is not in the list of areas",
    "empty_area": "an area has no tiles",
    "repeated_tile": "an area has a tile twice",
    "repeated_area": "two areas have one id",
    "strange_name": "readable names of areas repeat or are longer than 60 characters",
    "broken_outline": "an outline crosses itself or leaves the globe",
    **INTERVAL_FAULTS,
}


LONGEST_NAME = 60


class FlowKAnonymity(Guarantee):
    """Every row, and every published suppressed total, is made by at least k."""

    name: ClassVar[str] = "flow-k-anonymity"
    kind: ClassVar[Kind] = "privacy"
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "small": "sum", "totals": "sum"}

    k: int = Field(ge=1)
    k_unit: Literal["people", "trips"]

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        group = "is made by" if self.k_unit == "people" else "holds"
        return f"Every published flow, and every suppressed total that is given, {group} at least {self.k:,} {self.k_unit}."

    def what_was_done(self) -> str:
        """Describe the anonymization."""
        published = f"A count is published if it is of at least {self.k:,} {self.k_unit}"
        return f"{published}; other trips are suppressed. No ids are published."

    def check(self, written: WrittenRelease) -> Finding:
        """Check the group size of each row, and each total of a time step."""
        people = written.column(self.k_unit)
        small = int((~(people >= self.k)).sum())  # a missing number is too small
        suppressed, given = written.listed("suppressed")
        # A total of fewer than k trips cannot have been made by k people, whatever the unit.
        totals = int((given & (suppressed > 0) & (suppressed < self.k)).sum())
        return self.make_finding(small + totals > 0, {"rows": len(people), "small": small, "totals": totals})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many rows and totals are below k."""
        rows = counted(counts["rows"], "row")
        return f"{rows} checked, {counts['small']:,} below k; {counts['totals']:,} suppressed totals below k."


class DisjointFlows(Guarantee):
    """No pair of tiles is in two rows of a time step or interval, so that rows cannot be subtracted."""

    name: ClassVar[str] = "disjoint-flows"
    kind: ClassVar[Kind] = "privacy"
    sentence: ClassVar[str] = "In each time step, every pair of tiles lies in at most one published flow."
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", "crossed": "sum", "unlisted": "max"}

    def check(self, written: WrittenRelease) -> Finding:
        """Find pairs of tiles in two rows, in each piece of time between the ends of rows."""
        origin, destination = written.area_numbers("origin_area"), written.area_numbers("destination_area")
        if min(origin.min(initial=0), destination.min(initial=0)) < 0:
            return self.make_finding(True, {"rows": len(origin), "unlisted": 1})
        piece, row = row_pieces(written)
        pieces, none = int(piece.max(initial=-1)) + 1, np.zeros(0, np.int64)
        rows = Pairs(piece, origin[row], destination[row])
        found = rows_of_pairs(written.tiles_by_area, written.tile_count, pieces, rows, Pairs(none, none, none))
        crossed = int(found[1].sum())
        return self.make_finding(crossed > 0, {"rows": len(origin), "crossed": crossed})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many time steps have a pair of tiles in two rows."""
        if counts["unlisted"]:
            return "rows name an area that is not in the list of areas."
        return f"{counted(counts['rows'], 'row')} checked, {counts['crossed']:,} time steps have a pair twice."


def _are_bounds_broken(written: WrittenRelease) -> bool:
    """Return whether a confidence bound of volumes is missing, below 0, or on the wrong side of its volume."""
    given = [column in written.data.column_names for column in BOUND_COLUMNS]
    if not all(given):
        return any(given)
    low, volume, high = (written.column(name) for name in ("volume_low", "volume", "volume_high"))
    return bool(np.any((low < 0) | (low > volume) | (high < volume)))


class WellFormedFlows(Guarantee):
    """The files have the content of a release of flows, and nothing else."""

    name: ClassVar[str] = "well-formed-flows"
    kind: ClassVar[Kind] = "structure"
    sentence: ClassVar[str] = (
        "The files have the columns of a release and no others; areas, states, times and volumes are in order."
    )
    tallies: ClassVar[Mapping[str, Merge]] = {"rows": "sum", **flags(_FAULTS)}

    def check(self, written: WrittenRelease) -> Finding:
        """Check columns, areas, states and volumes."""
        table, given = written.data, set(written.data.column_names)
        if not (has_columns(table, FLOWS) and has_columns(written.steps, STEPS)):
            return self.make_finding(True, {"rows": len(table), "columns": 1})
        ends = [written.area_numbers(column).min(initial=0) for column in ("origin_area", "destination_area")]
        about = [feature["properties"] for feature in written.features]
        names = [area["name"] for area in about if area.get("name") is not None]
        faults = {
            "two_crowds": {"people", "trips"} <= given,
            "missing_values": any(table[c].null_count for c in given - {"t"}),
            "unknown_state": not set(table["state"].unique().to_pylist()) <= set(STATES),
            "small_volume": bool((written.column("volume") < 1).any()),
            "bounds": _are_bounds_broken(written),
            "unlisted_area": min(ends) < 0,
            "empty_area": any(len(tiles) == 0 for tiles in written.area_tiles),
            "repeated_tile": any(len(np.unique(tiles)) < len(tiles) for tiles in written.area_tiles),
            "repeated_area": len({area["area"] for area in about}) < len(about),
            "strange_name": len(set(names)) < len(names) or any(len(name) > LONGEST_NAME for name in names),
            "broken_outline": broken_outlines(written.features) > 0,
            **interval_faults(written),
        }
        return self.make_finding(any(faults.values()), {"rows": len(table), **faults})

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return the faults, or the number of rows checked."""
        return (faults_in(counts, _FAULTS) or f"{counted(counts['rows'], 'row')} checked") + "."
