"""Points on a cluster, and a summary of their trajectories."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.engine.spark import Frame, SparkEngine
from crowdveil.errors import InputError, Option
from crowdveil.io.axes import check_axes
from crowdveil.io.notes import ReadNotes
from crowdveil.io.person_ids import note_case_variants
from crowdveil.io.times import far_reason, refuse_spread
from crowdveil.io.trajectory_points import (
    INCOMPLETE_TRAJECTORY,
    bad_rows,
    find_point_columns,
    no_ids,
    no_value_reason,
    none_usable,
    note_ids_per_user,
)
from crowdveil.io.zones import read_zones
from crowdveil.model.globe import JOINED, Reach
from crowdveil.model.trajectories import Extent, Trajectories
from crowdveil.progress import Progress
from crowdveil.reading import TrajectoryReading
from crowdveil.run.spark.point_rows import KEY, PointReader
from crowdveil.run.spark.sources import (
    FORM_ROWS,
    count_people,
    learn_time_form,
    quoted,
    readable,
    settle_clock,
    settle_zone,
    source_of,
)
from crowdveil.run.spark.trip_rows import BAD


@dataclass(frozen=True)
class SparkPoints:
    """Points on the cluster, and a summary of them.

    Attributes
    ----------
    rows
        The frame of points, and of notes.
    tracks
        A frame with a row for each trajectory: its ids, `KEY`, points, first time, sum of times,
        box, how many points are lost.
    reader
        How they were read.
    trajectories, people, points
        Numbers of usable ones.
    frame
        Trajectories without points: zones, what k counts, and the extent of all.
    """

    rows: Frame
    tracks: Frame
    reader: PointReader
    frame: Trajectories
    trajectories: int = 0
    people: int = 0
    points: int = 0


def read_spark_points(engine: SparkEngine, data: Any, reading: TrajectoryReading, notes: ReadNotes) -> SparkPoints:
    """Read points on the cluster. The frames are not cached: use `engine.kept` around all queries on them."""
    frame = engine.read(readable(data))
    source = source_of(engine, data, frame)
    columns = find_point_columns(
        source, reading.lat, reading.lon, reading.time, reading.trajectory, reading.user, notes
    )
    zones = (
        None
        if reading.zones is None
        else read_zones(reading.zones, zone_id=reading.zone_id, numbered=True, notes=notes)
    )
    rows = frame.select(*map(quoted, columns.used))
    form = learn_time_form(engine, frame, source, columns.time, reading)
    reader = PointReader(source, columns, reading.tz, form)
    points = engine.map_rows(rows, reader, reader.schema)
    ids = ", ".join(reader.ids)
    sums = (
        "count(*) AS points, count_if(lost) AS lost, sum(t) AS total, min(t) AS t, max(t) AS last, min(lon) AS west, "
        "min(lat) AS south, max(lon) AS east, max(lat) AS north, min(lon + if(lon < 0, 360D, 0D)) AS low, "
        "max(lon + if(lon < 0, 360D, 0D)) AS high, " + ", ".join(f"sum({name}) AS {name}" for name in KEY)
    )
    tracks = engine.sql(f"SELECT {ids}, {sums} FROM {{points}} WHERE note IS NULL GROUP BY {ids}", points=points)
    none, nobody = np.zeros(0), np.zeros(0, object)
    nothing = np.zeros(0, np.int64)
    empty = Trajectories(
        none, none, nothing, np.zeros(1, np.int64), nobody, nothing, nobody, columns.counts, zones=zones
    )
    return SparkPoints(points, tracks, reader, empty)


def summarize_points(
    engine: SparkEngine, points: SparkPoints, reading: TrajectoryReading, notes: ReadNotes, progress: Progress
) -> SparkPoints:
    """Add the summary of trajectories, once rows were read; note and drop bad rows, or raise."""
    reader, columns = points.reader, points.reader.columns
    noted = engine.gather(
        engine.sql("SELECT note, sum(n) AS n FROM {rows} WHERE note IS NOT NULL GROUP BY note", rows=points.rows),
        progress,
    )
    said = dict(zip(noted["note"].to_pylist(), noted["n"].to_pylist(), strict=True))
    people = "person" if len(reader.ids) == 2 else reader.ids[0]
    joined = (f"{how}({name}) AS {name}" for name, how in JOINED.items())
    sides = ", ".join([*joined, "min(t) AS start", "max(last) AS last"])
    of_kind = engine.gather(
        engine.sql(
            f"SELECT lost > 0 AS gone, count(*) AS tracks, count(DISTINCT {people}) AS people, sum(points) AS points, "
            f"sum(lost) AS lost, {sides} FROM {{tracks}} GROUP BY lost > 0",
            tracks=points.tracks,
        )
    ).to_pylist()
    kept = next((found for found in of_kind if not found["gone"]), None)
    gone = next((found for found in of_kind if found["gone"]), None)
    reasons = [*map(no_value_reason, (*columns.ids, columns.lat, columns.lon, columns.time)), far_reason(columns.time)]
    bad = {reason: said[BAD + reason] for reason in reasons if BAD + reason in said}
    if bad and not reading.drop_invalid:
        reason = next(iter(bad))
        remedy = (
            f"Name the form of the times with {Option('time_format')}, fix"
            if reason == no_value_reason(columns.time)
            else "Fix"
        )
        raise bad_rows(reader.source, reason, [], bad[reason], remedy)
    for reason, n in bad.items():
        notes.drop(reason, n)
    settle_clock(said, columns.time, reading.tz, notes)
    settle_zone(said, reader.source, columns.time, reading.tz, notes)
    if not of_kind:
        raise (
            no_ids(reader.source, columns)
            if bad
            else InputError(reader.source.name, "the file has columns but no rows. Expected at least one.")
        )
    if gone is not None:
        notes.drop(INCOMPLETE_TRAJECTORY, gone["points"] - gone["lost"])
    if kept is None:
        raise none_usable(reader.source, of_kind[0]["tracks"])
    if len(reader.ids) == 2:
        found = engine.gather(engine.sql("SELECT count(DISTINCT trajectory) AS n FROM {tracks}", tracks=points.tracks))
        if found["n"][0].as_py() < sum(kind["tracks"] for kind in of_kind):
            note_ids_per_user(notes)
    refuse_spread(kept["start"], kept["last"], reader.form, f"{reader.source.name}, column {columns.time}")
    if not pa.types.is_integer(reader.schema.field(people).type):
        alike = engine.sql(f"SELECT {people} AS person, lower({people}) AS lower FROM {{tracks}}", tracks=points.tracks)
        note_case_variants(count_people(engine, alike)[1], columns.people, notes)
    sample = engine.gather(points.rows.where("note IS NULL AND NOT lost").select("lon", "lat").limit(FORM_ROWS))
    lon, lat = (sample[name].to_numpy() for name in ("lon", "lat"))
    check_axes(lon, lat, (columns.lon, columns.lat), reader.source.name, points.frame.zones, None)
    box = Reach(*(kept[name] for name in JOINED)).box
    extent = Extent.around(box, kept["start"])
    return replace(
        points, frame=replace(points.frame, within=extent), trajectories=kept["tracks"], people=kept["people"],
        points=kept["points"],
    )  # fmt: skip
