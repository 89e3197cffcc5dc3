"""Align the records of several releases: each record once, with the row of every release that contains it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crowdveil.ledger.audit import Published, Records
from crowdveil.ledger.content import SourceRecords
from crowdveil.model.arrays import Ints, Mask


class Covered(NamedTuple):
    """A release by its name, its records with their published rows, and its smallest group size."""

    name: str
    records: SourceRecords
    k: int


def align(releases: Sequence[Covered]) -> tuple[Records, list[Published]]:
    """Return all records of the releases, and the rows of each release.

    Where inputs have other numbers of trips for one record (a flow that was corrected, a trip that stands twice), the trips in
    common are one record, and the others a record of the releases that have them.
    """
    sources = np.unique(np.concatenate([release.records.source for release in releases]))
    rows = np.full((len(releases), len(sources)), -1, np.int64)
    volumes = np.zeros((len(releases), len(sources)), np.int64)
    person = np.zeros(len(sources), np.uint64)
    people_known = all(release.records.person is not None for release in releases)
    for number, (_, records, _) in enumerate(releases):
        place = np.searchsorted(sources, records.source)
        rows[number, place], volumes[number, place] = records.cell, records.volume
        if records.person is not None:
            person[place] = records.person
    rows, volume, of_record = _shared_volumes(rows, volumes)
    number_of = np.unique(person[of_record], return_inverse=True)[1].astype(np.int64) if people_known else None
    return Records(volume, number_of), [
        Published(release.name, rows[i], release.k) for i, release in enumerate(releases)
    ]


def _shared_volumes(rows: Ints, volumes: Ints) -> tuple[Ints, Ints, Ints]:
    """Split records whose volume differs between releases; return rows, volume, and the record that each is of."""
    most = volumes.max(axis=0)
    differs: Mask = ((volumes != most) & (volumes > 0)).any(axis=0)
    same, other = np.flatnonzero(~differs), np.flatnonzero(differs)
    parts = [(rows[:, same], most[same], same)]
    if len(other):
        levels = np.sort(volumes[:, other], axis=0)
        below = np.zeros(len(other), np.int64)
        for level in levels:
            kept = level > below
            inside = volumes[:, other] >= level
            part = np.where(inside, rows[:, other], -1)[:, kept]
            parts.append((part, (level - below)[kept], other[kept]))
            below = np.maximum(below, level)
    return (
        np.concatenate([part[0] for part in parts], axis=1),
        np.concatenate([part[1] for part in parts]),
        np.concatenate([part[2] for part in parts]),
    )
