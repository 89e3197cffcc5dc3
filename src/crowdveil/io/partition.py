"""Read an existing partition of the map: the areas of a release, or a table of zones and their groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from crowdveil.errors import InputError, Option, Text, counted
from crowdveil.io.manifest import read_manifest
from crowdveil.io.release_reader import load_flow_release_alone
from crowdveil.io.source import open_source
from crowdveil.io.values import ids_of
from crowdveil.io.written_release import MANIFEST_FILE, read_release
from crowdveil.model.areas import Areas
from crowdveil.model.arrays import Ints
from crowdveil.model.partition import BoxPartition, Partition, ZoneGroups
from crowdveil.model.release import PUBLISHED, FlowRelease
from crowdveil.model.time_axis import StepClass, step_classes
from crowdveil.model.zones import Zones

STEP_CLASSES: tuple[StepClass, ...] = get_args(StepClass)


def read_partition(given: Any, zones: Zones) -> Partition:
    """Return the boxes of a release, or the groups of zones in a table, over the zones of new data.

    `given` is the folder of a release of flows; or a file or table with the columns zone and group.
    """
    if isinstance(given, str | Path) and (Path(given).is_dir() or Path(given).name == MANIFEST_FILE):
        return _of_release(Path(given) if Path(given).is_dir() else Path(given).parent, zones)
    return _of_table(given, zones)


def _of_release(folder: Path, zones: Zones) -> BoxPartition:
    manifest = read_manifest(folder)
    written = read_release(folder, manifest.file_names)
    if written.has_intervals:
        raise InputError(
            folder,
            Text(
                "its rows span intervals of time, so it is not a partition for other data. Make a release with one "
                "partition for all time steps ({time_partition}).",
                time_partition=Option("time_partition", "stable"),
            ),
        )
    release = load_flow_release_alone(written, zones, manifest.step_seconds, manifest.time_zone)
    by = manifest.method.parameters.get("stable_by", "all")
    if by not in STEP_CLASSES:
        raise InputError(folder, "the manifest is broken; its parameter stable_by is unknown.")
    rows = release.state == PUBLISHED
    of_step = step_classes(release.t, manifest.time_zone, by)
    partition = _boxes(release, rows, by, of_step, manifest.cost.get("suppressed_volume_percent"))
    if len(partition) == 0:
        raise InputError(folder, "nothing is published in it, so it has no areas. Give another release.")
    if partition.overlapping_pairs():
        raise InputError(
            folder,
            Text(
                "its areas differ from one time step to another. Make a release with one partition for all time steps "
                "({time_partition}).",
                time_partition=Option("time_partition", "stable"),
            ),
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


def _of_table(given: Any, zones: Zones) -> ZoneGroups:
    name, group_of = read_groups(given)
    listed = [group_of.get(zone) for zone in zones.ids]
    missing = listed.count(None)
    if missing:
        raise InputError(
            name,
            f"{counted(missing, 'zone')} of the data {'has' if missing == 1 else 'have'} no group. Add a row for each zone.",
        )
    groups, part = np.unique(np.array(listed, str), return_inverse=True)
    areas = Areas.of_parts(zones, part)
    # A group of one zone has its id, as everywhere; one that is called like a zone keeps its number.
    ids = set(zones.ids.tolist())
    rows = zip(areas.names, areas.size.tolist(), groups.tolist(), strict=True)
    names = [own if size == 1 or group in ids else group for own, size, group in rows]
    return ZoneGroups(Areas(zones, np.array(names, dtype=object), areas.offsets, areas.tiles), part)


def read_groups(given: Any) -> tuple[str, dict[str, str]]:
    """Return the name of a table of zones and their groups, for messages, and the group of each zone that has one.

    The columns are called zone and group; of a table of two columns, one of these names is enough, or none.
    """
    source = open_source(given)
    table = source.read()
    columns = (_texts(table[column], source.name) for column in _columns_of(table, source.name))
    rows = [(zone, group) for zone, group in zip(*columns, strict=True) if zone is not None and group is not None]
    group_of = dict(rows)
    if len(group_of) < len(rows):
        raise InputError(source.name, "a zone is in more than one row. Give every zone one group.")
    return source.name, group_of


def _columns_of(table: pa.Table, name: str) -> tuple[str, str]:
    """Return the columns of zones and of groups."""
    named = {column.strip().lower(): column for column in table.column_names}
    if {"zone", "group"} <= named.keys():
        return named["zone"], named["group"]
    if table.num_columns != 2:
        raise InputError(name, f"Expected two columns, zone and group, got {counted(table.num_columns, 'column')}.")
    first, second = table.column_names
    return (second, first) if named.get("group") == first or named.get("zone") == second else (first, second)


def _texts(column: Any, name: str) -> list[str | None]:
    texts: list[str | None] = ids_of(column, name).cast(pa.string()).to_pylist()
    return texts
