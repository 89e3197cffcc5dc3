"""Release flows in the rows of an earlier release of the same trips, so that the two reveal no small group together."""

from __future__ import annotations

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Ints, Mask, frozen
from crowdveil.model.flows import Flows
from crowdveil.model.partition import EarlierRows
from crowdveil.model.release import FlowRelease
from crowdveil.solve.od.small_flows import count_groups
from crowdveil.solve.od.step_solver import published_rows
from crowdveil.solve.od.weights import with_exact_volumes


def release_like(data: Flows, earlier: EarlierRows, k: int) -> FlowRelease:
    """Publish each earlier row in each time step of the data inside its interval, where it reaches k and leaves no small rest."""
    from crowdveil.kernels.od.assign import Rows, assign_rows

    step, row = earlier.step, earlier.row
    bounds = np.searchsorted(step, np.arange(data.steps + 1))
    origin, destination = earlier.origin[row], earlier.destination[row]
    areas = earlier.areas
    rows = Rows(frozen(bounds[:-1], np.int64), frozen(bounds[1:], np.int64), origin, destination)
    made_of = areas.offsets, areas.tiles, len(data.zones)
    found, twice = assign_rows(data.offsets, data.origin, data.destination, rows, *made_of)
    if twice:
        raise InputError(
            Option("like"), "rows of the earlier release overlap, so that they cannot be taken; give another release."
        )
    inside = np.flatnonzero(found >= 0)
    volume, people = count_groups(data, inside, found[inside], len(row))
    keep = _without_small_rests(
        data, inside, found[inside], row, (people >= k) & (volume > 0), people, max(k, earlier.k)
    )
    offsets = np.searchsorted(step[keep], np.arange(data.steps + 1))
    columns = origin[keep], destination[keep], volume[keep], people[keep]
    release = published_rows(data, areas, offsets, *columns)
    return with_exact_volumes(data, release).without_empty_rows().without_unused_areas()


def _without_small_rests(data: Flows, flows: Ints, place: Ints, row: Ints, keep: Mask, people: Ints, k: int) -> Mask:
    """Return which rows to publish: suppress those with the fewest people where an earlier row would leave fewer than k.

    `place` is the new row of each flow, `row` the earlier row of each new one.
    """
    keep = keep.copy()
    rows = int(row.max(initial=-1)) + 1
    while True:
        left = ~keep[place]
        _, rest = count_groups(data, flows[left], row[place[left]], rows)
        small = (rest > 0) & (rest < k)
        kept = np.flatnonzero(keep & small[row])
        if not len(kept):
            return keep
        kept = kept[np.lexsort((kept, people[kept], row[kept]))]
        keep[kept[np.diff(row[kept], prepend=-1) != 0]] = False
