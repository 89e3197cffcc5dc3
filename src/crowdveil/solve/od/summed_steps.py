"""The flows of all time steps together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from crowdveil.model.arrays import row_slices
from crowdveil.model.flows import Flows


def sum_steps(data: Flows) -> Flows:
    """Return the flows of all time steps as those of one."""
    n = len(data.zones)
    keys, cell = np.unique(data.origin.astype(np.int64) * n + data.destination, return_inverse=True)
    volume = np.zeros(len(keys), np.int64)
    np.add.at(volume, cell, data.volume)
    people, offsets, ids = volume, None, None
    if data.person_ids is not None and data.person_offsets is not None:
        span = int(data.person_ids.max(initial=0)) + 1
        pairs = np.unique(cell[row_slices(data.person_offsets)] * span + data.person_ids)
        ids, offsets = pairs % span, np.searchsorted(pairs // span, np.arange(len(keys) + 1))
        people = np.diff(offsets)
    elif data.k_unit == "trips":
        people = np.zeros(len(keys), np.int64)
        np.add.at(people, cell, data.people)
    return replace(
        data, t=np.zeros(1, np.int64), offsets=np.array([0, len(keys)]), origin=(keys // max(n, 1)).astype(np.int32),
        destination=(keys % max(n, 1)).astype(np.int32), volume=volume, people=people, person_offsets=offsets, person_ids=ids,
        weight=None if data.weight is None else np.zeros(len(keys), np.int64), distinct_people=None,
    )  # fmt: skip
