"""Read a partition of the map that was made before: the areas of a release, or a table of zones and their groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, ParameterError, counted
from crowdveil.io.manifest_reader import read_manifest
from crowdveil.io.release_reader import load_flow_release_alone
from crowdveil.io.source import open_source
from crowdveil.io.times import read_seconds
from crowdveil.io.values import encode_ids
from crowdveil.io.written_release import MANIFEST_FILE, NO_TIME, WrittenRelease, read_release
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.partition import BoxPartition, EarlierRows, Partition, ZoneGroups
from crowdveil.model.release import PUBLISHED, FlowRelease
from crowdveil.model.time_axis import Clock, StepClass, TimeAxis, step_classes
from crowdveil.model.zones import Zones

STEP_CLASSES: tuple[StepClass, ...] = get_args(StepClass)


def read_partition(given: Any, zones: Zones, step: str | None = None) -> Partition:
    """Return the boxes of a release in a folder, or the groups of zones in a table, over the zones of new data.

    Parameters
    ----------
    given
        The folder of a release of flows; or a file or table with the columns zone and group.
    step
        The time step of the release whose boxes are taken, as text; None for those of all time steps.
    """
    if isinstance(given, str | Path) and (Path(given).is_dir() or Path(given).name == MANIFEST_FILE):
        return _of_release(Path(given) if Path(given).is_dir() else Path(given).parent, zones, step)
    if step is not None:
        raise ParameterError(
            Option("partition_step"), "it is for a release, and a table has no time steps; leave it out."
        )
    return _of_table(given, zones)


def read_earlier_rows(given: Any, flows: Flows) -> EarlierRows:
    """Return the rows of a release of flows in a folder, over the zones and the time steps of the data."""
    if not isinstance(given, str | Path) or not Path(given).is_dir():
        raise ParameterError(Option("like"), "wanted the folder of a release of flows; name one.")
    manifest, written, tz = _opened(Path(given))
    k = manifest["method"]["parameters"].get("k")
    if not written.is_flows or not isinstance(k, int):
        raise InputError(given, "wanted a release of flows whose rows have a group size of at least k.")
    step_s = manifest["step_seconds"]
    release = load_flow_release_alone(written, flows.zones, step_s, tz)
    rows = np.flatnonzero(release.state == PUBLISHED)
    start, end = (times[rows] for times in _times_of(release, step_s, tz))
    step, row = _steps_of_rows(flows, start, end)
    return EarlierRows(release.areas, release.origin[rows], release.destination[rows], step, row, k)


ALWAYS = (-(2**62), 2**62)
"""The interval of rows without a time."""


def _times_of(release: FlowRelease, step_s: int | None, tz: str) -> tuple[Ints, Ints]:
    """Return start and end of each row."""
    if release.intervals is not None:
        return release.intervals.t, release.intervals.until
    start = release.t[release.step]
    if step_s is None or NO_TIME in start:
        return np.full(len(release), ALWAYS[0]), np.full(len(release), ALWAYS[1])
    return start, TimeAxis(step_s, tz).ends(start)


def _steps_of_rows(flows: Flows, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return each time step of the data with each row whose interval holds it, in order of steps and rows."""
    if flows.step_s is None:
        low, high = np.full(flows.steps, ALWAYS[0]), np.full(flows.steps, ALWAYS[1])
    else:
        low, high = flows.t, TimeAxis(flows.step_s, flows.tz).ends(flows.t)
    spans, of_row = np.unique(np.column_stack([start, end]), axis=0, return_inverse=True)
    of_row = of_row.reshape(-1)
    in_order = np.argsort(of_row, kind="stable")
    ends = np.searchsorted(of_row[in_order], np.arange(len(spans) + 1))
    steps, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for number, (begin, stop) in enumerate(spans.tolist()):
        first, last = int(np.searchsorted(high, begin, side="right")), int(np.searchsorted(low, stop))
        if np.any(low[first:last] < begin) or np.any(high[first:last] > stop):
            raise ParameterError(
                Option("step"),
                f"time steps of the data hold more than a row of the release of {Option('like')}; add its rows up with crowdveil "
                "derive, or choose shorter ones.",
            )
        held = in_order[ends[number] : ends[number + 1]]
        steps.append(np.repeat(np.arange(first, last), len(held)))
        rows.append(np.tile(held, last - first))
    step, row = np.concatenate(steps), np.concatenate(rows)
    order = np.lexsort((row, step))
    return step[order], row[order]


def _opened(folder: Path) -> tuple[dict[str, Any], WrittenRelease, str]:
    """Return the manifest, the tables and the time zone of a release."""
    manifest = read_manifest(folder)
    written = read_release(folder, {role: entry["name"] for role, entry in manifest["files"].items()})
    return manifest, written, str(manifest["input"]["options"].get("tz", "UTC"))


def _of_release(folder: Path, zones: Zones, step: str | None) -> BoxPartition:
    manifest, written, tz = _opened(folder)
    if written.has_intervals:
        raise InputError(
            folder,
            "its rows span intervals of time, which are no partition for other data; make a release with one partition for all "
            f"time steps ({Option('time_partition', 'stable')}).",
        )
    release = load_flow_release_alone(written, zones, None, tz)
    by = manifest["method"]["parameters"].get("stable_by", "all") if step is None else "all"
    if by not in STEP_CLASSES:
        raise InputError(folder, "the manifest is broken; its parameter stable_by is unknown.")
    rows = release.state == PUBLISHED
    if step is not None:
        rows = rows & (release.step == _number_of(step, release, tz, folder))
    of_step = step_classes(release.t, tz, by)
    partition = _boxes(release, rows, by, of_step, manifest["cost"].get("suppressed_volume_percent"))
    if len(partition) == 0:
        raise InputError(folder, "nothing is published in it, so it has no areas; give another release.")
    if partition.overlapping_pairs():
        raise InputError(
            folder,
            f"its areas differ from one time step to another; name the one to take with {Option('partition_step')}, or make a "
            f"release with one partition for all ({Option('time_partition', 'stable')}).",
        )
    return partition


def _boxes(
    release: FlowRelease, rows: Any, by: StepClass, of_step: Ints, suppressed: float | None
) -> BoxPartition:  # fmt: skip
    """Return the distinct boxes of some rows, by class of their time step."""
    columns = (of_step[release.step[rows]], release.origin[rows], release.destination[rows])
    boxes = np.unique(np.column_stack([np.asarray(c, np.int64) for c in columns]), axis=0)
    classes, counts = np.unique(boxes[:, 0], return_counts=True)
    used, place = np.unique(boxes[:, 1:], return_inverse=True)
    origin, destination = (side.astype(np.int32) for side in place.reshape(-1, 2).T)
    offsets = np.cumsum([0, *counts])
    return BoxPartition(release.areas.only(used), by, classes, offsets, origin, destination, suppressed)


def _number_of(step: str, release: FlowRelease, tz: str, folder: Path) -> int:
    """Return the number of the time step of a release that begins at a time, given as text."""
    read = read_seconds(pa.array([step]), str(Option("partition_step")))
    t = read.values if read.instants else Clock(tz).to_utc(read.values)
    found = np.flatnonzero(release.t == t[0]) if not read.bad.any() else np.zeros(0, np.int64)
    if len(found) == 0:
        raise ParameterError(
            Option("partition_step"), f"wanted the start of a time step of {folder.name}, such as 2020-03-02T08:00."
        )
    return int(found[0])


def _of_table(given: Any, zones: Zones) -> ZoneGroups:
    source = open_source(given)
    table = source.read()
    if table.num_columns != 2:
        raise InputError(
            source.name, f"wanted two columns, zone and group, but got {counted(table.num_columns, 'column')}."
        )
    zone_column, group_column = _columns_of(table)
    zone, names, no_zone = encode_ids(zone_column)
    group, groups, no_group = encode_ids(group_column)
    if no_zone is not None or no_group is not None:
        raise InputError(source.name, "a zone or its group is missing in a row; fill it in.")
    index = np.array([zones.index_of(str(name)) for name in names], np.int64)[zone]
    part = np.full(len(zones), -1, np.int64)
    part[index[index >= 0]] = group[index >= 0]
    if len(np.unique(zone)) < len(zone):
        raise InputError(source.name, "a zone is in more than one row; give every zone one group.")
    missing = int(np.count_nonzero(part < 0))
    if missing:
        raise InputError(
            source.name,
            f"{counted(missing, 'zone')} of the data {'has' if missing == 1 else 'have'} no group; add a row for each zone.",
        )
    return _groups(zones, part, [str(name) for name in groups])


def _columns_of(table: pa.Table) -> tuple[Any, Any]:
    """Return the columns of zones and of groups: by their names, or the first and the second."""
    named = {name.strip().lower(): name for name in table.column_names}
    zone = named.get(
        "zone", next((n for n in table.column_names if n.strip().lower() != "group"), table.column_names[0])
    )
    group = next(name for name in table.column_names if name != zone)
    return table[zone], table[group]


def _groups(zones: Zones, part: Ints, names: list[str]) -> ZoneGroups:
    """Return groups in the order of their names; a group of one zone has the id of the zone, as everywhere."""
    order = sorted(set(part.tolist()), key=lambda group: names[group])
    number = np.full(len(names), -1, np.int64)
    number[order] = np.arange(len(order))
    part = number[part]
    areas = Areas.of_parts(zones, part)
    ids = set(zones.ids.tolist())
    rows = zip(areas.names, areas.size.tolist(), order, strict=True)
    called = [name if size == 1 or names[old] in ids else names[old] for name, size, old in rows]
    return ZoneGroups(Areas(zones, np.array(called, dtype=object), areas.offsets, areas.tiles), part)
