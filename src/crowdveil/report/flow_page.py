"""The page model of a report of flows: maps, time steps, group sizes and tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from crowdveil.errors import counted
from crowdveil.io.manifest import Manifest
from crowdveil.io.written_release import NO_TIME, WrittenRelease
from crowdveil.model.area_labels import explained
from crowdveil.model.arrays import Floats, Ints
from crowdveil.report import flow_picture, layers, svg_figures
from crowdveil.report.attack_table import percent
from crowdveil.report.flow_picture import FlowPicture, TileValues
from crowdveil.report.interval_charts import hours_shade, interval_charts, line_over_time, mean_hours, thinned
from crowdveil.report.layers import Shade
from crowdveil.report.page_model import STRONGER, Figure, PageModel, Table
from crowdveil.report.questions import smallest_group_size
from crowdveil.report.shapes import PictureFrame

ROWS_IN_TABLE = 20


def build_page_model(written: WrittenRelease, manifest: Manifest) -> PageModel:
    """Return the page model of a release of flows."""
    tz = manifest.time_zone
    after, values = flow_picture.released(written, manifest)
    every = _shades(after, values)
    if written.has_intervals:
        every.append(hours_shade(written, after))
    pictures: list[Figure] = []
    data: dict[str, Any] = {"kind": "flows", "frame": None, "layers": []}
    if after.located:
        shades = [shade for shade in every if not shade.uniform]
        frame = map_frame(after)
        data |= {"frame": frame.as_json(), "layers": [layers.flow_layer(after, frame, shades)]}
        pictures += _maps(after, frame, shades)
    pictures += _charts(written, manifest, tz)
    tables = [_largest(after, "Largest published flows over all time steps"), _busiest(after)]
    shown_tables = [t for t in tables if t.rows]
    return PageModel(data, pictures, shown_tables, _key_figures(written, manifest), _omissions(after, every))


def map_frame(picture: FlowPicture) -> PictureFrame:
    """Return the frame around a picture."""
    lon = np.concatenate([picture.lon[np.isfinite(picture.lon)], picture.rings.lon])
    lat = np.concatenate([picture.lat[np.isfinite(picture.lat)], picture.rings.lat])
    return PictureFrame.around(lon, lat)


def _shades(after: FlowPicture, values: TileValues) -> list[Shade]:
    shades = [
        layers.by_size("inflation", "Tiles that a trip's end is spread over", after.by_face(values.spread_over)),
        layers.by_rank(
            "trips",
            "Trips that leave or reach a tile, spread evenly",
            after.by_face(values.trips),
            int(after.volume.min(initial=1)),
        ),
    ]
    title = "Where trips may be suppressed: share of a tile's pairs with all tiles, over all time steps, in no published flow"
    return [*shades, layers.by_share("unpublished", title, after.by_face(values.unpublished))]


def _maps(shown: FlowPicture, frame: PictureFrame, shades: list[Shade]) -> list[Figure]:
    """Return a map of the largest flows, and one map for each shade."""
    paths = svg_figures.map_outlines(shown, svg_figures.still_frame(frame))
    flows = svg_figures.still_map(shown, frame, paths, "Map of the largest flows", flows=True)
    volume = flow_picture.top_flows(shown, svg_figures.MAX_LINES)[2]
    text = Markup(
        f"The {len(volume):,} largest flows between areas, by their trips over all time steps. Wider and {STRONGER} lines are "
        "more trips. Lines bend to the right of their direction; circles are trips inside an area."
    )
    figures = [Figure("Flows", flows, text, svg_figures.flow_legend(volume))]
    for shade in shades:
        svg = svg_figures.still_map(shown, frame, paths, shade.title, shade=shade)
        legend = [(f"q{i}", label) for i, label in enumerate(shade.labels) if np.any(shade.classes == i)]
        figures.append(Figure(shade.title, svg, _describe(shade), legend))
    return figures


def _describe(shade: Shade) -> str:
    classes = shade.classes[shade.classes >= 0]
    if not len(classes):
        return "No area has a value."
    usual = int(np.bincount(classes).argmax())
    share = np.mean(classes == usual)
    return f"Most often {shade.labels[usual]} ({100 * share:.0f} % of {len(classes):,} areas)."


def _charts(written: WrittenRelease, manifest: Manifest, tz: str) -> list[Figure]:
    figures = []
    least, counts = smallest_group_size(written, manifest), manifest.k_unit
    if least is not None:
        people = written.column(counts).astype(np.int64)
        half, most = int(np.median(people)), int(people.max())
        text = f"Half of the flows have {half:,} {counts} or more; minimum {least:,}, maximum {most:,}."
        axes = "Distribution of group sizes", f"{counts} per flow", "flows"
        figures.append(svg_figures.histogram("Group sizes", people, axes, text, max(least, 1)))
    sizes = written.area_sizes
    if len(written.data):
        origins, destinations = (written.area_numbers(column) for column in ("origin_area", "destination_area"))
        ends = np.bincount(origins, minlength=len(sizes)) + np.bincount(destinations, minlength=len(sizes))
        order = np.argsort(sizes, kind="stable")
        half = int(sizes[order][np.searchsorted(np.cumsum(ends[order]), len(written.data))])
        most = int(sizes.max())
        text = f"Half of the origins and destinations are areas of {counted(half, 'tile')} or fewer; the largest has {most:,}."
        axes = "Distribution of area sizes", "tiles per area", "origins and destinations"
        figures.append(svg_figures.histogram("Area sizes", sizes, axes, text, times=ends.astype(np.int64)))
    if written.has_intervals:
        return [*figures, *interval_charts(written, manifest), *_suppressed_over_time(written, manifest, tz)]
    published, _ = written.listed("published")
    t, step = written.listed_steps()
    if 1 < len(t) <= 20_000 and t[0] > NO_TIME:
        volume = np.bincount(step, published, len(t)).astype(np.float64)
        t, by_step = _with_gaps(t, volume)
        text = f"{len(volume):,} time steps, {int(volume.sum()):,} trips."
        titles = "Published trips over time", "Published trips by time step"
        figures.append(line_over_time(titles, t, by_step, tz, "trips", text))
    return [*figures, *_suppressed_over_time(written, manifest, tz)]


def _suppressed_over_time(written: WrittenRelease, manifest: Manifest, tz: str) -> list[Figure]:
    """Return a line of the suppressed share of trips by time step or window, where the release gives one above 0."""
    t, step = written.listed_steps()
    (published, _), (suppressed, given) = written.listed("published"), written.listed("suppressed")
    if not 1 < len(t) <= 20_000 or t[0] == NO_TIME or not suppressed[given].any():
        return []
    every, index = flow_picture.every_step(t)
    share = np.full(len(every), np.nan)
    share[index[step[given]]] = 100 * suppressed[given] / np.maximum(published[given] + suppressed[given], 1)
    shown, ticks = thinned(every, share, tz)
    title, unit = "Suppressed trips over time", manifest.k_unit
    text = f"Up to {percent(float(np.nanmax(share)))} of the trips of a time step are suppressed."
    if np.isnan(shown).any():
        k = manifest.k
        text += f" Shaded: not published, since it may be of fewer than {'k' if k is None else f'{k:,}'} {unit}."
    return [Figure(title, svg_figures.line(shown, ticks, title, "time step", "% of trips"), text)]


def _with_gaps(t: Ints, volume: Floats) -> tuple[Ints, Floats]:
    """Return all steps from the first to the last, and their volume; NaN for steps without published flows."""
    every, index = flow_picture.every_step(t)
    values = np.full(len(every), np.nan)
    values[index] = np.where(volume > 0, volume, np.nan)
    return every, values


def _largest(shown: FlowPicture, title: str) -> Table:
    o, d, v = flow_picture.top_flows(shown, ROWS_IN_TABLE)
    rows = [
        [shown.names[a], shown.names[b], f"{n:,}"] for a, b, n in zip(o.tolist(), d.tolist(), v.tolist(), strict=True)
    ]
    names = explained(name for row in rows for name in row[:2])
    return Table(title, ["from", "to", "trips"], rows, [False, False, True], names)


def _busiest(shown: FlowPicture) -> Table:
    order = shown.busiest[:ROWS_IN_TABLE]
    km2 = [f"{v:,.2f}" if np.isfinite(v) else "–" for v in shown.km2.tolist()]
    rows = [[shown.names[i], shown.ids[i], f"{shown.size[i]:,}", km2[i], f"{shown.trips[i]:,}"] for i in order]
    return Table("Areas with most trips", ["area", "id", "tiles", "km²", "trips that leave or reach it"], rows,
                 [False, False, True, True, True])  # fmt: skip


def _key_figures(written: WrittenRelease, manifest: Manifest) -> list[tuple[str, str]]:
    cost = manifest.cost
    least = smallest_group_size(written, manifest)
    figures = [
        ("trips published", f"{cost['published_volume']:,}"),
        ("flows published", f"{cost['published_flows']:,}"),
        ("time steps with flows", f"{cost['published_time_steps']:,}"),
    ]
    if written.has_intervals:
        figures.append(("mean length of intervals", f"{mean_hours(written):,.1f} h"))
    if "suppressed_volume_percent" in cost:
        figures.append(("of all trips suppressed", f"{cost['suppressed_volume_percent']} %"))
    if least is not None:
        figures.append((f"minimum group size, {manifest.k_unit}", f"{least:,}"))
    return figures


def _omissions(after: FlowPicture, shades: list[Shade]) -> list[str]:
    notes = [text for text in [explained(after.names[i] for i in after.busiest)] if text]
    notes += [
        f"There is no map of one color: {s.title[0].lower()}{s.title[1:]}: {s.uniform} everywhere."
        for s in shades
        if s.uniform
    ]
    if after.aggregation:
        notes.append(f"On the map {after.aggregation}.")
    shown = int(after.volume.sum())
    if shown != after.all_volume or len(after.names) != after.all_areas:
        share = f"{100 * shown / after.all_volume:.0f} %" if after.all_volume else "0 %"
        notes.append(
            f"The map shows the {len(after.volume):,} largest flows and {len(after.names):,} of {after.all_areas:,} areas: "
            f"{share} of the published trips. The files of the release contain all."
        )
    return notes
