"""Estimate the flows between any zones, per time step or over many of them.

What it does
------------
A row of a release has the trips between two areas. Where they start and end inside the areas is unknown, so the volume is
spread over the tiles of each area, evenly or by a weight, and from a tile to the zones that it overlaps, by the share of its
surface. Origin and destination are independent: a row gives (its share of the origin) × (its share of the destination) of its
trips to a pair of zones. On the release's own tiles, spread evenly, this is the papers' ṽ.

A row with an interval of time is spread evenly over its time steps.

Bounds
------
`lower` counts the trips of rows that lie wholly in the pair of zones (and in the time), `upper` those of rows that touch it. For
any weights, the published trips of the pair lie between the two. Suppressed trips are unknown and in neither, so `upper` does not
bound all trips. Shapes that share less than a thousandth of the smaller one count as neighbors.

Notes
-----
A pair that no row touches is not listed: it is unknown, not 0. Estimates are never rounded, and the summary counts those that
`min_volume` drops. A release of sparse hours touches nearly all pairs of the map in each hour: `over` sums hours, `margins`
ignores origin or destination, and both are shorter than a year of full matrices.

Rows that overlap (`glove`) are summed, as in the papers. Rows with noise (`laplace`) are used unchanged.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices, section 4.3
and appendix H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.analysis.base import Analysis, TableResult
from crowdveil.analysis.calendar import Slots, when_columns
from crowdveil.analysis.estimates import ANYWHERE, Estimates, Groups, estimate_chunks
from crowdveil.analysis.study import Study
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import counted
from crowdveil.io.times import time_column
from crowdveil.model.arrays import Labels, Mask
from crowdveil.model.tabular import align_rows
from crowdveil.model.zones import Zones
from crowdveil.params import Params

NOT_COUNTS = (
    "Volumes are estimates, not counts. lower and upper bound the published trips; suppressed trips are in neither, and a pair "
    "that is not listed is unknown, not 0."
)
MAX_LISTED = 10
"""Flows in the summary."""


class ReconstructionParams(Params):
    """Parameters of reconstruction."""

    over: Literal["step", "day", "week", "all"] = "step"
    """Each time step separately; or sums by hour of the day, by hour of the week, or over all time steps."""
    margins: bool = False
    """Only the trips that leave and that reach each zone."""
    min_volume: float = Field(0.0, ge=0)
    """Drop estimates below this many trips; their number and trips are in the summary."""


@dataclass
class Tally:
    """Totals of the estimates so far.

    Attributes
    ----------
    rows
        Listed estimates.
    volume
        Their trips.
    left_out, left_out_volume
        Estimates below the minimum volume, and their trips.
    largest
        The largest listed ones.
    """

    rows: int = 0
    volume: float = 0.0
    left_out: int = 0
    left_out_volume: float = 0.0
    largest: list[tuple[float, int, int, int, int, int]] = field(default_factory=list)

    def add(self, found: Estimates, keep: Mask) -> None:
        """Add a chunk; the estimates in `keep` are listed."""
        listed = int(keep.sum())
        volume, kept = float(found.volume.sum()), float(found.volume[keep].sum()) if listed < len(found) else None
        self.rows += listed
        self.left_out += len(found) - listed
        self.volume += volume if kept is None else kept
        self.left_out_volume += 0.0 if kept is None else volume - kept
        # After the first few chunks, nearly no row is among the largest.
        least = self.largest[-1][0] if len(self.largest) == MAX_LISTED else 0.0
        top = np.flatnonzero(keep & (found.volume > least))
        if len(top) > MAX_LISTED:
            top = np.sort(top[np.argpartition(-found.volume[top], MAX_LISTED - 1)[:MAX_LISTED]])
        columns = (found.volume, found.group, found.origin, found.destination, found.lower, found.upper)
        rows = zip(*(column[top].tolist() for column in columns), strict=True)
        self.largest = sorted([*self.largest, *rows], key=lambda row: -row[0])[:MAX_LISTED]


@dataclass(frozen=True, eq=False, repr=False)
class Reconstruction(TableResult):
    """Flows between zones, computed on demand, since a year of them may not fit into memory.

    Attributes
    ----------
    study
        The release and the zones.
    params
        The parameters.
    """

    study: Study
    params: ReconstructionParams
    progress: Progress = no_progress
    _tallied: list[Tally] = field(default_factory=list, repr=False)

    @property
    def zones(self) -> Zones:
        """The zones of the flows."""
        return self.study.zones

    @property
    def labels(self) -> Labels:
        """The ids of the zones."""
        return self.zones.ids

    @property
    def published(self) -> int:
        """Trips of all rows of the release; with margins each counts at origin and destination."""
        return int(self.study.released.release.volume.sum()) * (2 if self.params.margins else 1)

    @property
    def slots(self) -> Slots | None:
        """The hours that time steps are summed by; None if they are not."""
        if self.params.over not in ("day", "week"):
            return None
        return Slots.of([self.study.released.release], self.params.over)

    def chunks(self, progress: Progress | None = None) -> Iterator[pa.Table]:
        """Yield the table in chunks, sorted by time, origin and destination."""
        tally = Tally()
        for chunk in self._estimates(progress or self.progress):
            keep = chunk.volume >= self.params.min_volume
            tally.add(chunk, keep)
            yield self._table(chunk if keep.all() else chunk.where(keep))
        self._tallied[:] = [tally]

    def table(self) -> pa.Table:
        """Return all estimates as one Arrow table."""
        return pa.concat_tables(self.chunks())

    def tally(self) -> Tally:
        """Return the totals; compute the estimates first if necessary."""
        if not self._tallied:
            for _ in self.chunks():
                pass
        return self._tallied[0]

    def _estimates(self, progress: Progress) -> Iterator[Estimates]:
        side, groups = self.study.released, self._groups()
        if self.params.margins:
            yield from estimate_chunks(side, groups, destinations=False, progress=progress)
            yield from estimate_chunks(side, groups, origins=False, progress=progress)
        else:
            yield from estimate_chunks(side, groups, progress=progress)

    def _groups(self) -> Groups:
        release, slots = self.study.released.release, self.slots
        if slots is not None:
            return slots.groups(release)
        return Groups.steps(release) if self.params.over == "step" else Groups.all(release)

    def _table(self, found: Estimates) -> pa.Table:
        ids = pa.array(self.zones.ids, pa.string())
        ends = {}
        for name in ("origin", "destination"):
            zone = getattr(found, name)
            missing = zone == ANYWHERE if self.params.margins else None
            ends[name] = pa.DictionaryArray.from_arrays(pa.array(zone, mask=missing), ids)
        return pa.table({**self._times(found), **ends, "volume": found.volume, "lower": found.lower,
                         "upper": found.upper})  # fmt: skip

    def _times(self, found: Estimates) -> dict[str, Any]:
        release, slots = self.study.released.release, self.slots
        if slots is None and (self.params.over == "all" or release.step_s is None):
            return {}
        return when_columns(release, slots, found.group)

    def about(self) -> dict[str, Any]:
        """Return the description of the numbers, for the file."""
        return {
            "analysis": "reconstruct",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": NOT_COUNTS,
            "published_trips": int(self.study.released.release.volume.sum()),
        }

    def lines(self) -> list[str]:
        """Return the totals, the trips that are missing from them, and the largest flows."""
        tally, published = self.tally(), self.published
        outside = max(0.0, published - tally.volume - tally.left_out_volume)
        what = "margins of zones" if self.params.margins else "flows between zones"
        twice = " (each counted at origin and destination)" if self.params.margins else ""
        lines = [
            f"{counted(tally.rows, 'estimate')} of {what}, on {counted(len(self.zones), 'zone')}",
            f"trips in them         {tally.volume:,.1f} of {published:,} published{twice}",
        ]
        if tally.left_out:
            lines.append(
                f"below {self.params.min_volume:g} trips, dropped: {counted(tally.left_out, 'estimate')} with "
                f"{tally.left_out_volume:,.1f} trips"
            )
        if outside > 1e-6 * max(published, 1):
            lines.append(f"outside all zones: {outside:,.1f} trips")
        return [*lines, "", *self._largest(tally), "", NOT_COUNTS]

    def _largest(self, tally: Tally) -> list[str]:
        rows = [["when", "from", "to", "trips", "lower", "upper"]]
        for volume, group, origin, destination, lower, upper in tally.largest:
            ends = ["any" if end == ANYWHERE else str(self.zones.ids[end]) for end in (origin, destination)]
            rows.append([self._when(group), *ends, f"{volume:,.1f}", f"{lower:,}", f"{upper:,}"])
        return align_rows(rows, left=3)

    def _when(self, group: int) -> str:
        release, slots = self.study.released.release, self.slots
        if slots is not None:
            return slots.name(group)
        if self.params.over == "all" or release.step_s is None:
            return "all"
        return str(time_column(release.step_starts[group : group + 1], release.tz, as_text=True)[0])


def run(study: Study, params: ReconstructionParams, progress: Progress) -> Reconstruction:
    """Return the reconstruction, which is computed when it is read or written."""
    reconstruction = Reconstruction(study, params, progress)
    _ = reconstruction.slots  # raises for a release without hours before anything is written
    return reconstruction


ANALYSIS = Analysis(
    "reconstruct",
    ReconstructionParams,
    run,
    __doc__ or "",
    "Zones are the release's own tiles unless others are given. Each estimate has bounds of the published trips: of rows that "
    "lie wholly in the pair of zones, and of rows that touch it. Suppressed trips are in neither.",
    compares=False,
    examples=(
        "out/ -o flows.parquet",
        "out/ --zones zones.geojson --to-zones districts.geojson --over week -o week.csv",
        "out/ --zones zones.geojson --to-zones h3:7 --weight population --min-volume 0.5 -o hexagons.parquet",
        "out/ --margins -o margins.csv",
    ),
)
