"""The parts of a report that are of flows: maps, steps, crowds and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdveil.analysis.calendar import GAPS
from crowdveil.errors import counted
from crowdveil.io.times import iso_times
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report import figures, layers, picture
from crowdveil.report.layers import Shade
from crowdveil.report.page_model import Figure, Parts, PrivateContext, Table
from crowdveil.report.picture import FlowPicture, TileValues
from crowdveil.report.questions import smallest_crowd
from crowdveil.report.shapes import PictureFrame

ROWS_IN_TABLE = 20


def parts(written: WrittenRelease, manifest: dict[str, Any], inside: PrivateContext | None) -> Parts:
    """What is shown of a release of flows."""
    tz = time_zone(written, manifest)
    after, values = picture.released(written, tz)
    before = None if inside is None else picture.original(inside.original)
    shades = _shades(after, values)
    shown = [("after", "The release", after, shades)]
    if before is not None and inside is not None:
        shown.append(("before", "The original", before, _shades_before(before, inside)))
    pictures: list[Figure] = []
    data: dict[str, Any] = {"kind": "flows", "frame": None, "layers": []}
    located = [(name, title, p, s) for name, title, p, s in shown if p.located]
    if located:
        frame = map_frame([p for _, _, p, _ in located])
        data |= {"frame": frame.as_json(), "layers": [layers.flow_layer(*each[:3], frame, each[3]) for each in located]}
        for _, title, p, s in located:
            pictures += _maps(title, p, frame, s)
    pictures += _charts(written, manifest, tz)
    tables = [_largest(after, "Largest published flows, all time steps together"), _busiest(after)]
    return Parts("flows", data, pictures, [t for t in tables if t.rows], _tiles(written, manifest), _left_out(after))


def time_zone(written: WrittenRelease, manifest: dict[str, Any]) -> str:
    """The time zone that steps were cut in: as the data was read, or as Parquet keeps it."""
    given = manifest["input"]["options"].get("tz")
    return str(given or getattr(written.steps.schema.field("t").type, "tz", None) or "UTC")


def map_frame(pictures: list[FlowPicture]) -> PictureFrame:
    """The frame around all that is drawn."""
    lon = np.concatenate([c for p in pictures for c in (p.lon[np.isfinite(p.lon)], p.rings.lon)])
    lat = np.concatenate([c for p in pictures for c in (p.lat[np.isfinite(p.lat)], p.rings.lat)])
    return PictureFrame.around(lon, lat)


def _shades(after: FlowPicture, values: TileValues) -> list[Shade]:
    shades = [
        layers.by_size("inflation", "Tiles that a trip's end is spread over", after.by_face(values.spread_over)),
        layers.by_rank("trips", "Trips that leave or reach a tile, spread evenly", after.by_face(values.trips)),
    ]
    if values.occurs is not None:
        title = "Share of time steps in which a tile occurs in a published flow"
        shades.append(layers.by_share("occurs", title, after.by_face(values.occurs)))
    return shades


def _shades_before(before: FlowPicture, inside: PrivateContext) -> list[Shade]:
    shades = [layers.by_rank("trips", "Trips that leave or reach a tile", before.trips.astype(np.float64))]
    if inside.lost is not None and len(inside.lost) >= int(before.tiles.max(initial=-1)) + 1:
        shades.insert(
            0, layers.by_share("lost", "Share of a tile's trips that is suppressed", before.by_face(inside.lost))
        )
    return shades


def _maps(title: str, shown: FlowPicture, frame: PictureFrame, shades: list[Shade]) -> list[Figure]:
    """The largest flows, and one map for each shade."""
    small, _ = figures.still_frame(frame)
    paths = figures.map_outlines(shown, small)
    flows = figures.still_map(shown, frame, paths, f"{title}: map of the largest flows", flows=True)
    lines = min(figures.MOST_LINES, len(shown.volume))
    text = (
        f"The {lines:,} largest flows between areas, all time steps together; wider lines are more trips, "
        "and each bends to its right."
    )
    made = [Figure(f"{title}: flows", flows, text, [])]
    for shade in shades:
        svg = figures.still_map(shown, frame, paths, f"{title}: {shade.title}", shade=shade)
        legend = [(f"q{i}", label) for i, label in enumerate(shade.labels) if np.any(shade.classes == i)]
        made.append(Figure(f"{title}: {shade.title.lower()}", svg, _in_words(shade), legend))
    return made


def _in_words(shade: Shade) -> str:
    classes = shade.classes[shade.classes >= 0]
    if not len(classes):
        return "No area has a value."
    usual = int(np.bincount(classes).argmax())
    share = np.mean(classes == usual)
    return f"Most often {shade.labels[usual]} ({100 * share:.0f} % of {len(classes):,} areas)."


def _charts(written: WrittenRelease, manifest: dict[str, Any], tz: str) -> list[Figure]:
    made = []
    least, counts = smallest_crowd(written, manifest), manifest["k_counts"]
    if least is not None:
        crowd = written.column(counts).astype(np.int64)
        values, labels = figures.spread(crowd, max(least, 1))
        half, most = int(np.median(crowd)), int(crowd.max())
        text = f"Half of the flows have {half:,} {counts} or more; the smallest {least:,}, the largest {most:,}."
        svg = figures.bars(values, labels, "Distribution of crowd sizes", f"{counts} behind a flow", "flows")
        made.append(Figure("Crowd sizes", svg, text, []))
    sizes = np.array([len(t) for t in written.area_tiles], np.int64)
    if len(written.data):
        origins, destinations = (written.area_numbers(column) for column in ("origin_area", "destination_area"))
        ends = np.bincount(origins, minlength=len(sizes)) + np.bincount(destinations, minlength=len(sizes))
        values, labels = figures.spread(sizes, times=ends.astype(np.int64))
        order = np.argsort(sizes, kind="stable")
        half = int(sizes[order][np.searchsorted(np.cumsum(ends[order]), len(written.data))])
        most = int(sizes.max())
        text = f"Half of the ends of flows are areas of {counted(half, 'tile')} or fewer; the largest has {most:,}."
        svg = figures.bars(values, labels, "Distribution of area sizes", "tiles of an area", "ends of flows")
        made.append(Figure("Area sizes", svg, text, []))
    published, _ = written.listed("published")
    t, place = written.listed_steps()
    if 1 < len(t) <= 20_000 and t[0] > NO_TIME:
        volume = np.bincount(place, published, len(t)).astype(np.float64)
        t, by_step = _with_gaps(t, volume)
        labels = [picture.minutes(text) for text in iso_times(t[[0, len(t) // 2, -1]], tz).to_pylist()]
        shown, ticks = _thinned(by_step, labels)
        svg = figures.line(shown, ticks, "Published trips by time step", "time step", "trips")
        text = f"{len(volume):,} time steps, {int(volume.sum()):,} trips."
        if np.isnan(shown).any():
            text += f" Shaded: {GAPS}."
        made.append(Figure("Published trips over time", svg, text, []))
    return made


def _with_gaps(t: Ints, volume: Floats) -> tuple[Ints, Floats]:
    """All steps from the first to the last one; those that nothing was published of are not listed, and become NaN."""
    every, place = picture.every_step(t)
    values = np.full(len(every), np.nan)
    values[place] = np.where(volume > 0, volume, np.nan)
    return every, values


def _thinned(values: Floats, labels: list[str]) -> tuple[Floats, list[str]]:
    """At most a thousand points of a line: means of runs; labels at both ends and in the middle."""
    run = -(-len(values) // 1000)
    starts = np.arange(0, len(values), run)
    known = np.add.reduceat(np.isfinite(values).astype(np.int64), starts)
    sums = np.add.reduceat(np.nan_to_num(values), starts)
    means = np.divide(sums, known, out=np.full(len(sums), np.nan), where=known > 0)
    ticks = [""] * len(means)
    ticks[0], ticks[len(means) // 2], ticks[-1] = labels
    return means, ticks


def _largest(shown: FlowPicture, title: str) -> Table:
    o, d, v = figures.top_flows(shown, ROWS_IN_TABLE)
    rows = [
        [shown.names[a], shown.names[b], f"{n:,}"] for a, b, n in zip(o.tolist(), d.tolist(), v.tolist(), strict=True)
    ]
    return Table(title, ["from", "to", "trips"], rows, [False, False, True])


def _busiest(shown: FlowPicture) -> Table:
    order = np.argsort(-shown.trips, kind="stable")[:ROWS_IN_TABLE].tolist()
    km2 = [f"{v:,.2f}" if np.isfinite(v) else "–" for v in shown.km2.tolist()]
    rows = [[shown.names[i], f"{shown.size[i]:,}", km2[i], f"{shown.trips[i]:,}"] for i in order]
    return Table("Areas with most trips", ["area", "tiles", "km²", "trips that leave or reach it"], rows,
                 [False, True, True, True])  # fmt: skip


def _tiles(written: WrittenRelease, manifest: dict[str, Any]) -> list[tuple[str, str]]:
    cost = manifest["cost"]
    least = smallest_crowd(written, manifest)
    tiles = [
        ("trips published", f"{cost['published_volume']:,}"),
        ("flows published", f"{cost['published_flows']:,}"),
        ("time steps with flows", f"{cost['published_time_steps']:,}"),
    ]
    if "suppressed_volume_percent" in cost:
        tiles.append(("of all trips suppressed", f"{cost['suppressed_volume_percent']} %"))
    if least is not None:
        tiles.append((f"smallest crowd, {manifest['k_counts']}", f"{least:,}"))
    return tiles


def _left_out(after: FlowPicture) -> list[str]:
    said = []
    if after.together:
        said.append(f"On the map {after.together}.")
    shown = int(after.volume.sum())
    if shown != after.all_volume or len(after.names) != after.all_areas:
        share = f"{100 * shown / after.all_volume:.0f} %" if after.all_volume else "0 %"
        said.append(
            f"The map has the {len(after.volume):,} largest flows and {len(after.names):,} of {after.all_areas:,} areas: "
            f"{share} of the published trips. The files of the release have all of them."
        )
    return said
