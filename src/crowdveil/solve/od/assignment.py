"""Assignment of original flows to the rows of a release; every comparison of the two starts here."""

from __future__ import annotations

import numpy as np

from crowdveil.errors import InputError, Option, counted
from crowdveil.model.arrays import Ints, require
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease


def row_of_flows(flows: Flows, release: FlowRelease) -> Ints:
    """Return the row of the release that each original flow lies in, -1 where it was suppressed.

    Rows may be boxes of any two sets of tiles, as long as no flow lies in two of them.
    """
    row, twice = rows_met(flows, release)
    if twice:
        raise InputError(
            "release",
            f"every flow must lie in one row of its time step at most, but {counted(twice, 'flow')} of the "
            "original lie in more; verify the release.",
        )
    return row


def rows_met(flows: Flows, release: FlowRelease) -> tuple[Ints, int]:
    """Return a row of the release that each original flow lies in, -1 where there is none; and how many flows lie in more."""
    from crowdveil.kernels.od.assign import assign_rows

    check_same_zones(flows, release)
    areas = release.areas
    return assign_rows(
        flows.offsets, flows.origin, flows.destination, *rows_of_steps(flows, release), release.origin,
        release.destination, areas.offsets, areas.tiles, len(flows.zones),
    )  # fmt: skip


def rows_of_steps(flows: Flows, release: FlowRelease) -> tuple[Ints, Ints]:
    """Return where the rows of each time step of the original begin and end in the release."""
    first, last = np.zeros(flows.steps, np.int64), np.zeros(flows.steps, np.int64)
    step = steps_of_release(flows, release)
    first[step], last[step] = release.offsets[:-1], release.offsets[1:]
    return first, last


def steps_of_release(flows: Flows, release: FlowRelease) -> Ints:
    """Return the time step of the original that each step of the release is. A release may have fewer of them."""
    place = np.searchsorted(flows.t, release.t)
    known = (place < flows.steps) & (flows.t[np.minimum(place, flows.steps - 1)] == release.t if flows.steps else False)
    check_steps(int(len(release.t) - np.count_nonzero(known)))
    require(bool(np.all(np.diff(place) > 0)), "release: time steps must be in order, each once.")
    return place.astype(np.int64)


def check_steps(missing: int) -> None:
    """Raise if a release has time steps that the original has not."""
    if missing:
        raise InputError(
            "release",
            f"{counted(missing, 'time step')} of it {'is' if missing == 1 else 'are'} not in the original; "
            f"read the original with the same {Option('step')} and {Option('tz')}.",
        )


def check_same_zones(flows: Flows, release: FlowRelease) -> None:
    """Raise unless flows and release have the same tiles under the same numbers."""
    ours, theirs = flows.zones, release.areas.zones
    same = ours is theirs or (len(ours) == len(theirs) and bool(np.all(ours.ids == theirs.ids)))
    require(same, "release: it must be made of the zones that the original has, each with the same id.")
