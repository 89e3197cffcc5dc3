"""Number the trajectories and people of rows by their ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source
from crowdveil.io.trajectory_points import PointColumns, note_ids_per_user
from crowdveil.io.values import encode_ids, ids_of
from crowdveil.model.arrays import Ints, Labels


def number_trajectories(
    source: Source, table: Any, columns: PointColumns, notes: ReadNotes
) -> tuple[Ints, Labels, Ints, Labels]:
    """Return the trajectory number of each row, trajectory ids, the person number of each trajectory, and person ids.

    Every row has its ids.
    """
    by_trajectory, by_user = columns.trajectory, columns.user
    if by_trajectory is None or by_user is None:
        column = by_trajectory or by_user or ""
        group, labels = _encode_ids(table[column], f"{source.name}, column {column}")
        return group, labels, np.arange(len(labels)), labels
    group, labels = _encode_ids(table[by_trajectory], f"{source.name}, column {by_trajectory}")
    owners = _owners(table[by_user], group, len(labels))
    if owners is not None:
        return group, labels, *_encode_ids(pa.array(owners), f"{source.name}, column {by_user}")
    owner, people = _encode_ids(table[by_user], f"{source.name}, column {by_user}")
    person = np.zeros(len(labels), np.int64)
    person[group] = owner
    if np.any(person[group] != owner):
        # Ids are unique only per user: a trajectory is a pair of user and id.
        pair, first, inverse = np.unique(
            owner.astype(np.int64) * len(labels) + group, return_index=True, return_inverse=True
        )
        rank = np.empty(len(pair), np.int64)
        rank[np.argsort(first, kind="stable")] = np.arange(len(pair))
        group, first = rank[inverse], np.sort(first)
        labels, person = labels[pair[np.argsort(rank)] % len(labels)], owner[first]
        note_ids_per_user(notes)
    return group, labels, person, people


def _owners(users: Any, group: Ints, groups: int) -> Ints | None:
    """Return the user of each trajectory if users are whole numbers and each trajectory has one; else None."""
    if users.type != pa.int64() or users.null_count:
        return None
    owner, values = np.zeros(groups, np.int64), users.to_numpy()
    owner[group] = values
    return owner if np.all(owner[group] == values) else None


def _encode_ids(column: Any, what: str) -> tuple[Ints, Labels]:
    """Number ids from 0 in order of appearance."""
    number, labels, _ = encode_ids(ids_of(column, what))
    return number.astype(np.int64), labels
