"""Arrays that travel together through the trajectory kernels, as NamedTuples."""

from __future__ import annotations

from typing import NamedTuple

from crowdveil.kernels._types import Floats, Indices, Ints


class Points(NamedTuple):
    """The points of all trajectories in planar meters and seconds; those of trajectory i are offsets[i] to offsets[i + 1]."""

    x: Floats
    y: Floats
    t: Floats
    offsets: Ints


class Metric(NamedTuple):
    """The spatio-temporal distance of a data set: points, mean speeds, and the weight λ of time."""

    points: Points
    speed: Floats
    weight: float


class TrajectoryTree(NamedTuple):
    """A binary tree over trajectories: the children of node i are 2 i and 2 i + 1, the root is 1.

    Attributes
    ----------
    order
        Trajectories leaf by leaf: with n of them, leaf i has those from n · i // 2^levels on.
    leaf_of
        The leaf of each trajectory.
    bounds
        The boxes of each node, as `mdav_tree` has them.
    levels
        Levels above the leaves, which are the last 2^levels nodes.
    """

    order: Ints
    leaf_of: Ints
    bounds: Floats
    levels: int


class SpaceTimeGrid(NamedTuple):
    """Points by slab of time and square cell: all that are near one lie in its slab or the next, in its cell or one around it.

    Attributes
    ----------
    order
        The point at each position: positions are in order of slab, then cell, then point.
    slab
        The number of each slab that has points: time // seconds, rising.
    slab_offsets
        The cells of slab i are slab_offsets[i] to slab_offsets[i + 1].
    cell
        The number of each cell, row · columns + column; rising in a slab.
    cell_offsets
        The points of cell i are at the positions cell_offsets[i] to cell_offsets[i + 1].
    columns
        Width of the grid. The outermost columns are empty, so that neighbors in a row have adjacent numbers.
    """

    order: Indices | Ints
    slab: Ints
    slab_offsets: Ints
    cell: Ints
    cell_offsets: Ints
    columns: int


class GridPoints(NamedTuple):
    """Points in the order of a grid: coordinates, time, trajectory, owner, and a random number from 0 to 1."""

    x: Floats
    y: Floats
    t: Ints
    trajectory: Ints
    owner: Ints
    draw: Floats


class SwapRadii(NamedTuple):
    """The least and the largest radius of a cluster of locations, in meters and in seconds."""

    min_m: float
    max_m: float
    min_s: float
    max_s: float


class CellSlots(NamedTuple):
    """The positions of each cell that are left: slot[cell_offsets[c]] to slot[last[c]].

    The cell of each position, the end of each cell, the position in each slot, and the slot of each position.
    """

    cell_of: Ints
    last: Ints
    slot: Ints
    at: Ints


class SwapBuffers(NamedTuple):
    """Buffers of `swap_locations`: `seen` (-1 at first) and `best` by owner, the others by location."""

    seen: Ints
    best: Ints
    candidate: Ints
    apart_s: Floats
    apart_m: Floats


class MeetingRule(NamedTuple):
    """Largest distances at which trajectories meet, meters and seconds; fewest changes of owner of a path."""

    meters: float
    seconds: int
    enough: int


class OwnedPoints(NamedTuple):
    """Points by trajectory: times, offsets, the owner of each point (-1: several), and the last time of each trajectory."""

    times: Ints
    offsets: Ints
    sure: Indices | Ints
    end: Ints


class PathState(NamedTuple):
    """Paths while tails are exchanged.

    By trajectory: the slab in which it last met another (-1 at first), the path that its coming points go on (its own number at
    first), and its first point that is on no path yet. By path: the owner of its last point (-1 at first), and how often owners
    changed on it. By point: its path.
    """

    met: Ints
    head: Ints
    begun: Ints
    last: Ints
    changes: Ints
    path: Indices | Ints
