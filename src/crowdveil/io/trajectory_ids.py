"""Number the trajectories and people of rows by their ids."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source
from crowdveil.io.trajectory_points import PointColumns, note_ids_per_user
from crowdveil.io.values import encode_ids, ids_of
from crowdveil.model.arrays import Ints, Labels, frozen


def number_trajectories(
    source: Source, table: Any, columns: PointColumns, notes: ReadNotes
) -> tuple[Ints, Labels, Ints, Labels]:
    """Return the trajectory number of each row, trajectory ids, the person number of each trajectory, and person ids.

    Every row has its ids.
    """
    from crowdveil.kernels.ordering import one_owner

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
    person, known = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.bool_)
    if not one_owner(frozen(group, np.int64), frozen(owner, np.int64), known, person):
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
    """Return the user of each trajectory if users are whole numbers and each trajectory has one; else None.

    The column is read in its chunks: nothing is copied or numbered for every point.
    """
    from crowdveil.kernels.ordering import one_owner

    if users.type != pa.int64() or users.null_count:
        return None
    owner, known = np.zeros(groups, np.int64), np.zeros(groups, np.bool_)
    group, start = frozen(group, np.int64), 0
    for chunk in users.chunks if isinstance(users, pa.ChunkedArray) else [users]:
        values = frozen(chunk.to_numpy(zero_copy_only=False), np.int64)
        if not one_owner(group[start : start + len(values)], values, known, owner):
            return None
        start += len(values)
    return owner


def _encode_ids(column: Any, what: str) -> tuple[Ints, Labels]:
    """Number ids as `encode_ids` does; whole numbers of a small range are looked up in a table, chunk by chunk."""
    from crowdveil.kernels.ordering import codes_in_range

    if not pa.types.is_signed_integer(column.type) or len(column) == 0 or column.null_count:
        return encode_ids(ids_of(column, what))[:2]
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    chunks_of_ids = [frozen(c.cast(pa.int64()).to_numpy(zero_copy_only=False), np.int64) for c in chunks if len(c)]
    low, high = min(int(p.min()) for p in chunks_of_ids), max(int(p.max()) for p in chunks_of_ids)
    span = high - low + 1
    if span > max(4 * len(column), 1 << 16):
        return encode_ids(ids_of(column, what))[:2]
    number, seen = np.full(span, -1, np.int64), np.empty(min(span, len(column)), np.int64)
    code, start, n = np.empty(len(column), np.int64), 0, 0
    for chunk in chunks_of_ids:
        n = codes_in_range(chunk, low, number, seen, n, code[start : start + len(chunk)])
        start += len(chunk)
    return code, seen[:n].copy()
