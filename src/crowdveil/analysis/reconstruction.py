"""Estimate the flows between any zones, for every time step or over many of them.

What it does
------------
A row of a release says how many trips went from one area to another. Nothing is known of where in them, so that its volume
is spread: over the tiles of each area, all the same or by a weight, and from a tile to the zones that it overlaps by the
share of its surface. The two ends are independent: a row gives (its share of the origin) × (its share of the destination) of
its trips to a pair of zones. On the release's own tiles, all tiles the same, this is the papers' ṽ.

Bounds
------
`lower` are the trips of rows that lie wholly in the pair of zones, `upper` those of rows that touch it. Whatever the weights,
what was published of the pair lies between the two. What was suppressed is in neither, and is not known: `upper` is no bound of
what happened. Shapes that share less than a thousandth of the smaller one are taken as neighbors.

Notes
-----
A pair that no row touches is not listed: nothing is known of it, and it is not 0. Estimates are never rounded, and none is
dropped unless `min_volume` says so; what it drops is counted and told. A release of thin hours touches nearly all pairs of the
map in each: `over` adds hours up, `margins` leaves out one end, and both are quicker to read than a year of full matrices.

Rows that overlap (`glove`) are added up, as the papers do. Rows with noise (`laplace`) are taken as they are.

References
----------
Matet et al., Adaptative generalization over a value hierarchy for the k-anonymization of Origin-Destination matrices, section 4.3
and appendix H.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.calendar import Slots
from crowdveil.analysis.estimates import ANYWHERE, Estimates, Groups, pieces_of
from crowdveil.analysis.study import Study
from crowdveil.errors import counted
from crowdveil.io.table_writer import open_table_writer
from crowdveil.io.times import time_column
from crowdveil.model.arrays import Mask
from crowdveil.model.zones import Zones
from crowdveil.params import Params
from crowdveil.progress import Progress, no_progress

NOT_COUNTS = (
    "Volumes are estimates, not counts. lower and upper bound what was published; what was suppressed is in neither, and a "
    "pair that is not listed is not 0."
)
TOLD = 10
"""Flows that the summary names."""


class ReconstructionParams(Params):
    """Parameters of reconstruction."""

    over: Literal["step", "day", "week", "all"] = "step"
    """Each time step by itself; or all of them added up by hour of the day, by hour of the week, or to one matrix."""
    margins: bool = False
    """Only what leaves each zone and what reaches it, whatever the other end."""
    min_volume: float = Field(0.0, ge=0)
    """Leave out estimates below this many trips; how many they were and what they held is told."""


@dataclass
class Tally:
    """What has been made so far.

    Attributes
    ----------
    rows
        Estimates listed.
    volume
        Their trips.
    left_out, left_out_volume
        Estimates below the least volume, and their trips.
    largest
        The largest of those listed.
    """

    rows: int = 0
    volume: float = 0.0
    left_out: int = 0
    left_out_volume: float = 0.0
    largest: list[tuple[float, int, int, int, int, int]] = field(default_factory=list)

    def add(self, found: Estimates, keep: Mask) -> None:
        """Count a piece, of which `keep` is listed."""
        listed = int(keep.sum())
        volume, kept = float(found.volume.sum()), float(found.volume[keep].sum()) if listed < len(found) else None
        self.rows += listed
        self.left_out += len(found) - listed
        self.volume += volume if kept is None else kept
        self.left_out_volume += 0.0 if kept is None else volume - kept
        # Pieces are long, and after the first few nearly none of their rows is among the largest.
        least = self.largest[-1][0] if len(self.largest) == TOLD else 0.0
        top = np.flatnonzero(keep & (found.volume > least))
        if len(top) > TOLD:
            top = np.sort(top[np.argpartition(-found.volume[top], TOLD - 1)[:TOLD]])
        columns = (found.volume, found.group, found.origin, found.destination, found.lower, found.upper)
        rows = zip(*(column[top].tolist() for column in columns), strict=True)
        self.largest = sorted([*self.largest, *rows], key=lambda row: -row[0])[:TOLD]


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Flows between zones. They are made as they are asked for, so that a year of them need not fit into memory.

    Attributes
    ----------
    study
        The release and the zones.
    params
        What was asked for.
    """

    study: Study
    params: ReconstructionParams
    progress: Progress = no_progress
    _told: list[Tally] = field(default_factory=list, repr=False)

    @property
    def zones(self) -> Zones:
        """The zones that flows go between."""
        return self.study.zones

    @property
    def published(self) -> int:
        """Trips of all rows of the release; with margins each counts at both ends."""
        return int(self.study.released.release.volume.sum()) * (2 if self.params.margins else 1)

    @property
    def slots(self) -> Slots | None:
        """The hours that steps are added up by, None where they are not."""
        if self.params.over not in ("day", "week"):
            return None
        return Slots.of([self.study.released.release], self.params.over)

    def pieces(self, progress: Progress | None = None) -> Iterator[pa.Table]:
        """The table piece by piece, sorted by time, origin and destination."""
        tally = Tally()
        for piece in self._estimates(progress or self.progress):
            keep = piece.volume >= self.params.min_volume
            tally.add(piece, keep)
            yield self._table(piece if keep.all() else piece.where(keep))
        self._told[:] = [tally]

    def table(self) -> pa.Table:
        """All of it as one Arrow table."""
        return pa.concat_tables(self.pieces())

    def tally(self) -> Tally:
        """How much of everything there is; works it out where nobody has asked for the estimates yet."""
        if not self._told:
            for _ in self.pieces():
                pass
        return self._told[0]

    def _estimates(self, progress: Progress) -> Iterator[Estimates]:
        side, groups = self.study.released, self._groups()
        if self.params.margins:
            yield from pieces_of(side, groups, destinations=False, progress=progress)
            yield from pieces_of(side, groups, origins=False, progress=progress)
        else:
            yield from pieces_of(side, groups, progress=progress)

    def _groups(self) -> Groups:
        release, slots = self.study.released.release, self.slots
        if slots is not None:
            return slots.groups(release)
        return Groups.steps(release) if self.params.over == "step" else Groups(np.zeros(len(release.t), np.int64), 1)

    def _table(self, found: Estimates) -> pa.Table:
        ids = pa.array(self.zones.ids, pa.string())
        ends = {}
        for name in ("origin", "destination"):
            place = getattr(found, name)
            missing = place == ANYWHERE if self.params.margins else None
            ends[name] = pa.DictionaryArray.from_arrays(pa.array(place, mask=missing), ids)
        return pa.table({**self._times(found), **ends, "volume": found.volume, "lower": found.lower,
                         "upper": found.upper})  # fmt: skip

    def _times(self, found: Estimates) -> dict[str, Any]:
        release, slots = self.study.released.release, self.slots
        if slots is not None:
            return {n: pa.array(c, pa.string()).take(pa.array(found.group)) for n, c in slots.columns().items()}
        if self.params.over == "all" or release.step_s is None:
            return {}
        return {"t": time_column(release.t, release.tz, as_text=False).take(pa.array(found.group))}

    def about(self) -> dict[str, Any]:
        """What the numbers are, for the file."""
        return {
            "analysis": "reconstruct",
            "parameters": self.params.model_dump(mode="json"),
            "meaning": NOT_COUNTS,
            "published_trips": int(self.study.released.release.volume.sum()),
        }

    def write(self, path: Path, progress: Progress = no_progress) -> None:
        """Write it piece by piece, as the ending of the name says: .csv, .parquet or .json."""
        pieces = self.pieces(progress)
        first = next(pieces)
        with open_table_writer(path, first.schema, self.about(), self.zones.ids) as write:
            write(first)
            for piece in pieces:
                write(piece)

    def lines(self) -> list[str]:
        """How much there is, what is not in it, and the largest flows."""
        tally, published = self.tally(), self.published
        outside = max(0.0, published - tally.volume - tally.left_out_volume)
        what = "ends of flows" if self.params.margins else "flows between zones"
        lines = [
            f"{counted(tally.rows, 'estimate')} of {what}, on {counted(len(self.zones), 'zone')}",
            f"trips in them         {tally.volume:,.1f} of {published:,} published{' (each at two ends)' * self.params.margins}",
        ]
        if tally.left_out:
            lines.append(
                f"below {self.params.min_volume:g} trips, left out: {counted(tally.left_out, 'estimate')} with "
                f"{tally.left_out_volume:,.1f} trips"
            )
        if outside > 1e-6 * max(published, 1):
            lines.append(f"outside of all zones: {outside:,.1f} trips")
        return [*lines, "", *self._largest(tally), "", NOT_COUNTS]

    def _largest(self, tally: Tally) -> list[str]:
        rows = [["when", "from", "to", "trips", "at least", "at most"]]
        for volume, group, origin, destination, lower, upper in tally.largest:
            ends = ["anywhere" if end == ANYWHERE else str(self.zones.ids[end]) for end in (origin, destination)]
            rows.append([self._when(group), *ends, f"{volume:,.1f}", f"{lower:,}", f"{upper:,}"])
        return aligned(rows, left=3)

    def _when(self, group: int) -> str:
        release, slots = self.study.released.release, self.slots
        if slots is not None:
            return slots.name(group)
        if self.params.over == "all" or release.step_s is None:
            return "all"
        return str(time_column(release.t[group : group + 1], release.tz, as_text=True)[0])


def aligned(rows: list[list[str]], left: int) -> list[str]:
    """Rows of a table for people; the first `left` columns begin at one place, the others end at one."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
             for row in rows]  # fmt: skip
    return ["  ".join(row).rstrip() for row in cells]


def run(study: Study, params: ReconstructionParams, progress: Progress) -> Reconstruction:
    """Say what is to be made; it is made when it is read or written."""
    found = Reconstruction(study, params, progress)
    _ = found.slots  # a release that has no hours is refused before anything is written
    return found


ANALYSIS = Analysis(
    "reconstruct",
    ReconstructionParams,
    run,
    __doc__ or "",
    "Zones are the release's own tiles unless others are given. Each estimate has bounds of what was published: trips of rows "
    "that lie wholly in the pair of zones, and of rows that touch it. What was suppressed is in neither.",
    compares=False,
    examples=(
        "out/ -o flows.parquet",
        "out/ --zones zones.geojson --to-zones districts.geojson --over week -o week.csv",
        "out/ --zones zones.geojson --to-h3 7 --weight population --min-volume 0.5 -o hexagons.parquet",
        "out/ --margins -o margins.csv",
    ),
)
