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
from crowdveil.io.values import encode_ids
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
    source = open_source(given)
    table = source.read()
    if table.num_columns != 2:
        raise InputError(
            source.name, f"Expected two columns, zone and group, got {counted(table.num_columns, 'column')}."
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
        raise InputError(source.name, "a zone is in more than one row. Give every zone one group.")
    missing = int(np.count_nonzero(part < 0))
    if missing:
        raise InputError(
            source.name,
            f"{counted(missing, 'zone')} of the data {'has' if missing == 1 else 'have'} no group. Add a row for each zone.",
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
