"""Split the trajectories of vehicles into rides, by a column that says whether a passenger is carried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Text
from crowdveil.io.source import Source
from crowdveil.model.arrays import Mask
from crowdveil.model.trajectories import Trajectories

COLUMN = "trajectory_id"
"""The column of the rides' ids in the written table."""
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no")


def read_flags(source: Source, column: str) -> Mask:
    """Return whether each row of a table is part of a ride: 1, true or yes, or 0, false or no."""
    if column not in source.columns:
        raise InputError(
            source.name, Text("there is no column {column}. Name one that exists with {split_by}.", column=column)
        )
    text = pc.utf8_lower(pc.utf8_trim_whitespace(source.read([column]).column(column).cast(pa.string())))
    known = pc.is_in(text, pa.array([*_YES, *_NO]))
    wrong = len(text) - int(pc.sum(known).as_py() or 0)
    if wrong:
        raise InputError(
            source.name,
            f"{wrong:,} values of column {column} are neither 1, true or yes nor 0, false or no. Correct them.",
        )
    return np.asarray(pc.is_in(text, pa.array(_YES)))


def split_rides(data: Trajectories, flags: Mask) -> Trajectories:
    """Return the rides in trajectories: each longest run of points with a flag is one. The others are left out.

    `flags` has a value for each row of the input. Rides are counted for the people of their trajectories.
    """
    if data.k_unit != "people" or data.row is None:
        raise InputError(
            Text(
                "rides are split from trajectories of known people or vehicles, which k counts. Name their column with "
                "{user}."
            )
        )
    inside = flags[data.row]
    begins = inside.copy()
    begins[1:] &= ~inside[:-1]
    of_point = np.repeat(np.arange(len(data)), np.diff(data.offsets))
    first = data.offsets[:-1]
    begins[first] = inside[first]
    starts = np.flatnonzero(begins)
    parent, points = of_point[starts], np.flatnonzero(inside)
    offsets = np.append(np.searchsorted(points, starts), len(points))
    number = np.arange(len(starts)) - np.searchsorted(parent, parent) + 1
    labels = [f"{data.ids[of]}-{n}" for of, n in zip(parent.tolist(), number.tolist(), strict=True)]
    left, person = np.unique(data.person[parent], return_inverse=True)
    return replace(
        data, lon=data.lon[points], lat=data.lat[points], t=data.t[points], offsets=offsets, ids=np.array(labels, object),
        person=person, people_ids=data.people_ids[left], row=data.row[points],
    )  # fmt: skip


def with_ride_ids(table: pa.Table, rides: Trajectories, rows: np.ndarray) -> pa.Table:
    """Return the rows of a table that are in rides, with a column of the rides' ids in place of one of that name."""
    of_row = dict(zip(rides.row.tolist(), np.repeat(rides.ids, np.diff(rides.offsets)).tolist(), strict=True))  # type: ignore[union-attr]
    taken, ids = table.take(rows), pa.array([of_row[row] for row in rows.tolist()], pa.string())
    if COLUMN in taken.column_names:
        return taken.set_column(taken.column_names.index(COLUMN), COLUMN, ids)
    return taken.append_column(COLUMN, ids)
