"""An aggregation: the first trajectory of a group stands for all of it."""

from __future__ import annotations

from crowdveil.model.arrays import Ints, take_slices
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.aggregation import Aggregation, GroupTrajectories
from crowdveil.solve.trajectory.distances import Distance


def first(
    data: Trajectories, distance: Distance, members: Ints, offsets: Ints, mean: GroupTrajectories
) -> GroupTrajectories:
    """Return the first member of each group."""
    rows, made = take_slices(data.offsets, members[offsets[:-1]])
    return GroupTrajectories(data.lon[rows], data.lat[rows], data.t[rows], made)


AGGREGATION = Aggregation("first-member", first, "The first trajectory of the group: an original one, with its times.")
