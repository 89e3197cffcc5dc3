"""Charts of the intervals of time of a release: how long they are, when and where."""

from __future__ import annotations

import numpy as np

from crowdveil.analysis.calendar import GAPS
from crowdveil.io.manifest import Manifest
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import WrittenRelease
from crowdveil.measures.od.generalization import LENGTHS, length_classes
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report import svg_figures
from crowdveil.report.flow_picture import FlowPicture, minutes, released_intervals
from crowdveil.report.layers import Shade
from crowdveil.report.page_model import Figure

_HOURS = (0.0, 1.5, 3.0, 6.0, 12.0, 24.0)
_HOUR_LABELS = ("up to 1.5 h", "1.5 to 3 h", "3 to 6 h", "6 to 12 h", "12 to 24 h", "24 h and more")


def row_hours(written: WrittenRelease) -> Floats:
    """Return the hours between start and end of each row."""
    start, until = written.row_intervals()
    hours: Floats = (until - start) / 3600
    return hours


def mean_hours(written: WrittenRelease) -> float:
    """Return the mean length of the interval of a published trip, hours."""
    volume = written.column("volume")
    return float(np.average(row_hours(written), weights=volume)) if volume.sum() else float("nan")


def interval_charts(written: WrittenRelease, manifest: Manifest) -> list[Figure]:
    """Return charts of the trips by length of their interval, and of the mean length and the trips over time."""
    if not len(written.data):
        return []
    hours, volume = row_hours(written), written.column("volume").astype(np.float64)
    by_length = np.bincount(length_classes(hours), volume, len(LENGTHS))
    text = f"Mean {mean_hours(written):,.1f} hours over published trips; the longest interval has {hours.max():,.0f} hours."
    figures = [
        Figure(
            "Length of intervals",
            svg_figures.bars(by_length.tolist(), LENGTHS, "Trips by length of their interval", "length", "trips"),
            text,
        )
    ]  # fmt: skip
    tz = manifest.time_zone
    intervals = released_intervals(written, manifest)
    slot, row = intervals.spread()
    trips = np.bincount(slot, (volume / intervals.steps)[row], len(intervals.start))
    long = np.bincount(slot, (volume * hours / intervals.steps)[row], len(intervals.start))
    with np.errstate(invalid="ignore", divide="ignore"):
        when = np.where(trips > 0, long / trips, np.nan)
    for title, values, unit in (
        ("Mean length of intervals over time", when, "hours"),
        ("Published trips over time", np.where(trips > 0, trips, np.nan), "trips"),
    ):
        text = "Trips of an interval are spread evenly over its time steps."
        figures.append(line_over_time((title, title), intervals.start, values, tz, unit, text))
    return figures


def line_over_time(titles: tuple[str, str], t: Ints, values: Floats, tz: str, unit: str, text: str) -> Figure:
    """Return a figure of values by time step, with gaps for missing ones; `titles` are those of the figure and of its drawing."""
    shown, ticks = thinned(t, values, tz)
    gaps = f" Shaded: {GAPS}." if np.isnan(shown).any() else ""
    return Figure(titles[0], svg_figures.line(shown, ticks, titles[1], "time step", unit), text + gaps)


def hours_shade(written: WrittenRelease, after: FlowPicture) -> Shade:
    """Return the mean length of the intervals of the trips that leave or reach each tile."""
    weight = written.column("volume").astype(np.float64)
    ends = [written.area_numbers(column) for column in ("origin_area", "destination_area")]
    size, (_, tiles) = written.area_sizes, written.tiles_by_area
    sums = []
    for values in (weight * row_hours(written), weight):
        of_area = np.sum([np.bincount(end, values, len(size)) for end in ends], axis=0)
        sums.append(np.bincount(tiles, np.repeat(of_area / size, size), written.tile_count))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = np.where(sums[1] > 0, sums[0] / sums[1], np.nan)
    title = "Mean length of the intervals of trips that leave or reach a tile"
    return Shade("hours", title, after.by_face(values), _HOURS, _HOUR_LABELS)


def thinned(t: Ints, values: Floats, tz: str) -> tuple[Floats, list[str]]:
    """Return at most a thousand points of a line, as means of runs; with times at both ends and in the middle."""
    labels = [minutes(text) for text in iso_times(t[[0, len(t) // 2, -1]], tz).to_pylist()]
    run = -(-len(values) // 1000)
    starts = np.arange(0, len(values), run)
    known = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    sums = np.add.reduceat(np.nan_to_num(values), starts)
    means = np.divide(sums, known, out=np.full(len(sums), np.nan), where=known > 0)
    ticks = [""] * len(means)
    ticks[0], ticks[len(means) // 2], ticks[-1] = labels
    return means, ticks
