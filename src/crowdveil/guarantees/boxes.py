"""Check that published boxes contain the original points, on the written table and the original."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field

from crowdveil.errors import counted
from crowdveil.guarantees.base import Finding, Guarantee, Kind, Merge
from crowdveil.guarantees.suppressed_trajectories import segment_counts
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import Ints, Mask, row_slices
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.projection import EARTH_RADIUS_M
from crowdveil.model.trajectories import Trajectories

PAIRS = 4_000_000
"""Pairs of a point and a box that are compared together."""


class TruthfulBoxes(Guarantee):
    """Every original point of a published trajectory is in one of its boxes, and every box has such a point."""

    name: ClassVar[str] = "truthful-boxes"
    kind: ClassVar[Kind] = "structure"
    tallies: ClassVar[Mapping[str, Merge]] = {
        "outside": "sum", "boxes": "sum", "empty": "sum",
        "no_boxes": "max", "other_number": "max", "open": "max", "off_grid": "sum",
    }  # fmt: skip
    segment_s: int | None = Field(None, ge=1)
    """Length of a segment in seconds where segments of trajectories are published; None for whole trajectories."""
    grid_m: float | None = Field(None, gt=0)
    """Meters between lines of the public grid that sides of boxes lie on; None in releases made before there was one."""
    grid_s: int = Field(1, ge=1)
    """Seconds between the times that boxes can begin and end at."""

    def statement(self) -> str:
        """Return the guarantee in one sentence."""
        if self.segment_s is not None:
            return (
                "Every point of an original trajectory is, in place and time, in a box of one of its published segments, if all "
                f"of its segments are published.{self._grid}"
            )
        return (
            "Every point of an original trajectory is, in place and time, in a box of the one that is published for it, and "
            f"every box has a point of each trajectory that it is published for.{self._grid}"
        )

    @property
    def _grid(self) -> str:
        if self.grid_m is None:
            return ""
        return f" Bounds of boxes are on a public grid of {self.grid_m:,.5g} m and {self.grid_s:,} s."

    def check(self, written: WrittenRelease) -> Finding:
        """Find only whether there are boxes, on the grid: the files do not show the original points."""
        if written.boxes is None:
            return self.make_finding(True, {"no_boxes": 1})
        off = self._off_grid(written.boxes)
        return self.make_finding(
            off > 0, {"open": off == 0, "off_grid": off, "boxes": len(written.boxes.t_min)}, open_=True
        )

    def _off_grid(self, boxes: BoxBounds) -> int:
        """Return the number of boxes with a bound between the lines of the grid."""
        if self.grid_m is None:
            return 0
        return int(np.count_nonzero(_between_lines(boxes, self.grid_m, self.grid_s)))

    def check_with_trajectories(self, written: WrittenRelease, original: Trajectories, source: Ints | None) -> Finding:
        """Compare each original point with the boxes that are published for it."""
        boxes = written.boxes
        if boxes is None or source is None:
            return self.check(written)
        number = written.column("published_id")
        published = np.unique(number)
        if len(published) != len(source):
            return self.make_finding(True, {"other_number": 1}, with_original=True)
        of_box = source[np.searchsorted(published, number)] if len(number) else np.zeros(0, np.int64)
        whole = np.isin(np.arange(len(original)), source)
        if self.segment_s is not None:
            whole &= np.bincount(source, minlength=len(original)) == segment_counts(original, self.segment_s)
        covered, held = _matches(boxes, of_box, original)
        wanted = whole[row_slices(original.offsets)]
        outside = int(np.count_nonzero(wanted & ~covered))
        # The first and last point of a segment lie between original points.
        empty = 0 if self.segment_s is not None else int(np.count_nonzero(~held))
        off = self._off_grid(boxes)
        counts = {"outside": outside, "boxes": len(number), "empty": empty, "off_grid": off}
        return self.make_finding(outside > 0 or empty > 0 or off > 0, counts, with_original=True)

    def describe(self, counts: Mapping[str, int], with_original: bool) -> str:
        """Return how many points are outside, and how many boxes have no point. How many points there are is not public."""
        if counts["no_boxes"]:
            return "the files have no boxes."
        boxes = counted(counts["boxes"], "box", "boxes")
        if counts["open"]:
            on_grid = "" if self.grid_m is None else f"{boxes} checked, all bounds are on the grid; "
            return f"{on_grid}the files do not show the original points."
        if counts["off_grid"]:
            return f"{boxes} checked; {counts['off_grid']:,} have a bound that is not on the grid."
        return f"{boxes} checked; {counts['outside']:,} points are outside, {counts['empty']:,} boxes have no point."


def _between_lines(boxes: BoxBounds, meters: float, seconds: int) -> Mask:
    """Return which boxes have a bound that is no line of the grid: a multiple of a step of hundred-thousandths of a degree.

    The step of longitudes is that of the whole degree of latitude next to the box on the side of the pole.
    """
    unit_m = 2 * math.pi * EARTH_RADIUS_M / 360e5
    farther = np.ceil(np.maximum(np.abs(boxes.lat_min), np.abs(boxes.lat_max))).clip(max=89)
    shrinks = np.cos(farther * math.pi / 180)
    off: Mask = (boxes.t_min % seconds != 0) | (boxes.t_max % seconds != 0)
    for bound, step, edge in (
        (boxes.lat_min, math.ceil(meters / unit_m), 90),
        (boxes.lat_max, math.ceil(meters / unit_m), 90),
        (boxes.lon_min, np.ceil(meters / (unit_m * shrinks)), 180),
        (boxes.lon_max, np.ceil(meters / (unit_m * shrinks)), 180),
    ):
        line = np.rint(bound * 1e5 / step) * step / 1e5
        off |= (np.abs(bound - line) > 1e-9) & (np.abs(bound) != edge)
    return off


def _matches(boxes: BoxBounds, of_box: Ints, original: Trajectories) -> tuple[Mask, Mask]:
    """Return which original points are in a box of their trajectory, and which boxes have a point of theirs."""
    covered, held = np.zeros(original.points, np.bool_), np.zeros(len(of_box), np.bool_)
    lengths = np.diff(original.offsets)[of_box]
    ends = np.cumsum(lengths)
    low = 0
    while low < len(of_box):
        before = ends[low] - lengths[low]
        high = max(low + 1, int(np.searchsorted(ends, before + PAIRS, side="right")))
        box = np.repeat(np.arange(low, high), lengths[low:high])
        point = np.arange(len(box)) - (ends[box] - lengths[box] - before) + original.offsets[:-1][of_box[box]]
        inside = boxes.rows(box).contains(original.lon[point], original.lat[point], original.t[point])
        covered[point[inside]] = True
        held[box[inside]] = True
        low = high
    return covered, held
