"""Parts of a written release, of whole time steps or windows, which checkers take one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.guarantees import Guarantee, WellFormedFlows
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import TimeUnits
from crowdveil.run.merge_partitions import merge_findings
from crowdveil.run.stages import Findings, Guarantees
from crowdveil.run.verification import check

NO_MOMENT = -(2**63)
"""The time of rows that have none."""


@dataclass(frozen=True)
class ReleasePartition:
    """Completes the rows of whole time steps to what the files of a partition would hold; sent to executors.

    Attributes
    ----------
    rows
        The columns of rows.
    steps
        The table of all time steps.
    features
        The areas, as in the GeoJSON, without outlines.
    units
        What of time is in one partition: time steps, or windows.
    """

    rows: pa.Schema
    steps: pa.Table
    features: list[dict[str, Any]]
    units: TimeUnits

    def unit_of(self, column: Any) -> Ints:
        """Return the time step, or the day, of each time in a column."""
        return units_of(self.units, moments_of(column))

    def __call__(self, rows: pa.Table, units: Ints | None = None, *, all_areas: bool = False) -> WrittenRelease:
        """Return the rows, the areas that they name or all of them, and the steps of rows and of more `units`."""
        features = self.features
        if not all_areas:
            named = {name for end in ("origin_area", "destination_area") for name in pc.unique(rows[end]).to_pylist()}
            features = [feature for feature in features if feature["properties"]["area"] in named]
        known = np.unique(self.unit_of(rows["t"]))
        here = np.isin(self.unit_of(self.steps["t"]), known if units is None else np.union1d(known, units))
        return WrittenRelease(Path("the partition"), rows, self.steps.filter(pa.array(here)), features)


def moments_of(column: Any) -> Ints:
    """Return times in whole milliseconds, whatever their zone and unit; `NO_MOMENT` where there is none."""
    moments = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64())
    found: Ints = pc.fill_null(moments, NO_MOMENT).to_numpy()
    return found


def units_of(units: TimeUnits, moments: Ints) -> Ints:
    """Return the time step, or the day, of each time in milliseconds; rows without a time are in the unit of 1970."""
    if not units.days:
        return moments
    return units.number(np.where(moments == NO_MOMENT, 0, moments // 1000))


def rest_of(release: ReleasePartition, units: Ints) -> WrittenRelease:
    """Return what no partition has: listed steps of other `units`, and all areas."""
    empty = ~np.isin(release.unit_of(release.steps["t"]), units)
    steps = release.steps.filter(pa.array(empty))
    return WrittenRelease(Path("the rest"), release.rows.empty_table(), steps, release.features)


def overlapping_windows(release: ReleasePartition, guarantees: Sequence[Guarantee]) -> list[list[dict[str, Any]]]:
    """Return the findings of all listed windows together, where there are any: windows that overlap may be in two partitions."""
    if "until" not in release.steps.column_names:
        return []
    listed = WrittenRelease(Path("the windows"), release.rows.empty_table(), release.steps, [])
    return [
        [
            (g.check(listed) if isinstance(g, WellFormedFlows) else g.make_finding(False, {})).as_json()
            for g in guarantees
        ]
    ]


def without_outlines(features: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return areas with their properties alone."""
    return [{"properties": feature["properties"]} for feature in features]


def merge_with_rest(
    findings: list[list[dict[str, Any]]],
    release: ReleasePartition,
    units: Ints,
    guarantees: Guarantees,
    original: Flows | None = None,
) -> Findings:
    """Merge the findings of partitions, which have rows of these `units`, with those of what no partition has or all have."""
    rest = [finding.as_json() for _, finding in check(rest_of(release, units), guarantees, original)]
    return merge_findings(guarantees, [*findings, rest, *overlapping_windows(release, guarantees)])
