"""The best cut of a box in two, at any tile boundary in x or y of its origins or its destinations; and the arrays of cuts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints

ENDS, CUT = 7, 4
"""Numbers of a piece: where its origins, destinations and flows begin and end in the pool, and its box; those of a cut."""
OF_BOX = 6
"""Place of the box among the numbers of a piece."""
USED, PIECES, LEFTS = 0, 1, 2
"""Places of the counts of `Pieces`."""


class TilePlaces(NamedTuple):
    """Tiles: position on both axes, cost of a trip, and 1 if the tile counts where areas need a number of tiles."""

    x: Ints
    y: Ints
    cost: Ints
    counts: Ints


class CutFlows(NamedTuple):
    """Flows: tiles, trips and crowd of each, and the people behind it (empty where they are not known).

    k people are needed in each group of flows on its own: a piece of a box is published in the groups that have them. A group is
    a time step where several have the same areas; else all flows are one group. Nobody is listed in two groups.
    """

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    group: Ints
    member_offsets: Ints
    member: Ints


class Scratch(NamedTuple):
    """Memory of counts: a number for each person, and one more, the last one that was used; four numbers for each group."""

    seen: Ints
    crowd: Ints
    volume: Ints
    above: Ints
    number: Ints


class CutRules(NamedTuple):
    """Constraints of cuts.

    The smallest crowd; fewest tiles that count in an area (0: any); what deviations count in (0: a trip costs the tiles of its
    areas); what a suppressed trip costs; and the cost that a suppressed trip should save.
    """

    k: int
    tiles: int
    scale: int
    lost_cost: int
    multiplier: float


class BoxContents(NamedTuple):
    """Boxes by their content: offsets and tiles of origins, offsets and tiles of destinations, offsets and flows.

    What a trip of each costs besides its tiles, and the time steps that the trips are spread over.
    """

    origin_offsets: Ints
    origin_tiles: Ints
    destination_offsets: Ints
    destination_tiles: Ints
    flow_offsets: Ints
    flows: Ints
    trip_cost: Ints
    steps: Ints


class Pieces(NamedTuple):
    """Pieces of boxes.

    A pool of tiles and flows; where the origins, destinations and flows of each piece begin and end in it, and its box (seven
    numbers); its published trips, the largest crowd of a group and its cost; its best cut (gain, suppressed trips, axis, place);
    1 if it is published, 0 once it is cut. `left` has the seven numbers of pieces that are cut off: their flows are none, or
    those of crowds below k. Three counts: the numbers in the pool, the pieces, and those that are cut off. The last two
    are those of `BoxContents`.
    """

    pool: Ints
    ends: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    cut: Ints
    published: Ints
    left: Ints
    counts: Ints
    trip_cost: Ints
    steps: Ints


FAR = 1 << 40
NOT_ALLOWED = -1


@kernel
def whole_plane() -> Ints:
    """Return bounds that hold every tile: least and largest x, then y, of origins and then of destinations."""
    return np.array([-FAR, FAR, -FAR, FAR, -FAR, FAR, -FAR, FAR])


@kernel
def position(tiles: TilePlaces, axis: int, tile: int) -> int:
    """Return the position of a tile on an axis: 0 is x, 1 is y."""
    return int(tiles.x[tile] if axis == 0 else tiles.y[tile])


@kernel
def extend(bounds: Ints, first: int, tiles: TilePlaces, origin: int, destination: int) -> None:
    """Extend the bounds that begin at `first`, so that they hold the tiles of a flow."""
    for axis in range(4):
        at = position(tiles, axis % 2, origin if axis < 2 else destination)
        low, high = first + 2 * axis, first + 2 * axis + 1
        bounds[low], bounds[high] = min(bounds[low], at), max(bounds[high], at)


@kernel
def tiles_around(flows: CutFlows, chosen: Ints, tiles: TilePlaces) -> Ints:
    """Return the smallest bounds around the tiles of flows."""
    bounds = np.array([FAR, -FAR, FAR, -FAR, FAR, -FAR, FAR, -FAR])
    for flow in chosen:
        extend(bounds, 0, tiles, flows.origin[flow], flows.destination[flow])
    return bounds


@kernel
def inside(tile: int, tiles: TilePlaces, bounds: Ints, side: int) -> bool:
    """Return whether a tile lies within the bounds of origins (side 0) or of destinations (side 1)."""
    at, x, y = 4 * side, tiles.x[tile], tiles.y[tile]
    return bool(bounds[at] <= x <= bounds[at + 1] and bounds[at + 2] <= y <= bounds[at + 3])


@kernel
def _measure(side_tiles: Ints, tiles: TilePlaces, rules: CutRules, bounds: Ints, side: int) -> tuple[int, int]:
    """Return the cost and the number of the tiles within bounds; the number is NOT_ALLOWED if they are too few."""
    cost, count, counted = 0, 0, 0
    for tile in side_tiles:
        if inside(tile, tiles, bounds, side):
            cost += tiles.cost[tile]
            count += 1
            counted += tiles.counts[tile]
    return cost, (count if counted >= rules.tiles else NOT_ALLOWED)


@kernel
def side_bounds(
    side_tiles: Ints, tiles: TilePlaces, rules: CutRules, around: Ints, within: Ints, side: int
) -> tuple[bool, int, int]:
    """Return whether a side is trimmed to the bounds around its flows, and the cost and number of its tiles.

    It is not trimmed where that would leave too few tiles. The number is NOT_ALLOWED if it has too few even then.
    """
    cost, count = _measure(side_tiles, tiles, rules, around, side)
    if count != NOT_ALLOWED:
        return True, cost, count
    cost, count = _measure(side_tiles, tiles, rules, within, side)
    return False, cost, count


@kernel
def count_groups(flows: CutFlows, chosen: Ints, scratch: Scratch) -> int:
    """Count crowd and trips of each group of the flows, people of several flows once; return the largest crowd."""
    largest = 0
    for flow in chosen:
        scratch.crowd[flows.group[flow]] = 0
        scratch.volume[flows.group[flow]] = 0
    scratch.seen[-1] += 1
    for flow in chosen:
        group = flows.group[flow]
        scratch.crowd[group] += _new_people(flows, flow, scratch.seen)
        scratch.volume[group] += flows.volume[flow]
        largest = max(largest, scratch.crowd[group])
    return int(largest)


@kernel
def _new_people(flows: CutFlows, flow: int, seen: Ints) -> int:
    """Return the crowd of a flow without people that were seen, and mark these."""
    if len(flows.member) == 0:
        return int(flows.crowd[flow])
    more = 0
    for e in range(flows.member_offsets[flow], flows.member_offsets[flow + 1]):
        person = flows.member[e]
        if seen[person] != seen[-1]:
            seen[person] = seen[-1]
            more += 1
    return more


@kernel
def _spread_cost(flows: CutFlows, chosen: Ints, volume: int, cells: int, rules: CutRules, scratch: Scratch) -> int:
    """Return the deviation when the volume of flows is spread evenly over cells; see `deviation.deviations`.

    Each group that has k people is spread on its own; the others are not published.
    """
    if len(scratch.crowd) > 1:
        return _spread_cost_of_groups(flows, chosen, cells, rules, scratch)
    above, count = volume, len(chosen)
    if volume > cells:
        above, count = 0, 0
        for flow in chosen:
            if flows.volume[flow] * cells > volume:
                above += flows.volume[flow]
                count += 1
    return (2 * rules.scale * (above * cells - count * volume) + cells // 2) // cells


@kernel
def _spread_cost_of_groups(flows: CutFlows, chosen: Ints, cells: int, rules: CutRules, scratch: Scratch) -> int:
    """Return the sum of the deviations of the groups with k people."""
    count_groups(flows, chosen, scratch)
    for flow in chosen:
        scratch.above[flows.group[flow]] = 0
        scratch.number[flows.group[flow]] = 0
    for flow in chosen:
        group = flows.group[flow]
        if flows.volume[flow] * cells > scratch.volume[group]:
            scratch.above[group] += flows.volume[flow]
            scratch.number[group] += 1
    cost = 0
    for flow in chosen:
        group = flows.group[flow]
        if scratch.crowd[group] >= rules.k:
            lost = scratch.above[group] * cells - scratch.number[group] * scratch.volume[group]
            cost += (2 * rules.scale * lost + cells // 2) // cells
            scratch.crowd[group] = 0  # each group once
    return cost


@kernel
def piece_cost(
    origins: Ints,
    destinations: Ints,
    flows: CutFlows,
    chosen: Ints,
    volume: int,
    tiles: TilePlaces,
    rules: CutRules,
    around: Ints,
    within: Ints,
    trip_cost: int,
    steps: int,
    scratch: Scratch,
) -> int:
    """Return what publishing a piece costs; NOT_ALLOWED if an area has too few tiles. `volume` has its published trips."""
    _, o_cost, o_count = side_bounds(origins, tiles, rules, around, within, 0)
    if o_count == NOT_ALLOWED:
        return NOT_ALLOWED
    _, d_cost, d_count = side_bounds(destinations, tiles, rules, around, within, 1)
    if d_count == NOT_ALLOWED:
        return NOT_ALLOWED
    if rules.scale == 0:
        return (o_cost + d_cost + trip_cost) * volume
    return _spread_cost(flows, chosen, volume, o_count * d_count * steps, rules, scratch)


@kernel
def _published(flows: CutFlows, ordered: Ints, k: int, scratch: Scratch) -> tuple[Ints, Ints]:
    """Return the largest crowd of a group among the first i flows, and the trips of their groups with k people, for each i."""
    crowds, volumes = np.zeros(len(ordered) + 1, np.int64), np.zeros(len(ordered) + 1, np.int64)
    for flow in ordered:
        scratch.crowd[flows.group[flow]] = 0
        scratch.volume[flows.group[flow]] = 0
    scratch.seen[-1] += 1
    for i in range(len(ordered)):
        flow = ordered[i]
        group = flows.group[flow]
        before = scratch.volume[group] if scratch.crowd[group] >= k else 0
        scratch.crowd[group] += _new_people(flows, flow, scratch.seen)
        scratch.volume[group] += flows.volume[flow]
        after = scratch.volume[group] if scratch.crowd[group] >= k else 0
        crowds[i + 1], volumes[i + 1] = max(crowds[i], scratch.crowd[group]), volumes[i] + after - before
    return crowds, volumes


@kernel
def _bounds_of_first(flows: CutFlows, ordered: Ints, tiles: TilePlaces) -> Ints:
    """Return the bounds around the first i flows, eight numbers for each i."""
    found = np.empty(8 * (len(ordered) + 1), np.int64)
    for e in range(8):
        found[e] = FAR if e % 2 == 0 else -FAR
    for i in range(len(ordered)):
        for e in range(8 * i, 8 * i + 8):
            found[e + 8] = found[e]
        extend(found, 8 * i + 8, tiles, flows.origin[ordered[i]], flows.destination[ordered[i]])
    return found


@kernel
def _boundaries(side_tiles: Ints, tiles: TilePlaces, axis: int, low: int, high: int, rules: CutRules) -> Ints:
    """Return the positions after which a cut may lie, from `low` (the last flow before it) to before `high` (the next flow).

    Empty tiles between two flows go to either side. Only where areas have a least size can a place between matter, since both
    sides are trimmed.
    """
    if rules.tiles == 0:
        return np.array([low])
    found = np.empty(len(side_tiles), np.int64)
    count = 0
    for tile in side_tiles:
        at = position(tiles, axis, tile)
        if low <= at < high:
            found[count] = at
            count += 1
    return found[:count]


@kernel
def best_cut(
    origins: Ints,
    destinations: Ints,
    chosen: Ints,
    cost: int,
    flows: CutFlows,
    tiles: TilePlaces,
    rules: CutRules,
    rest: int,
    trip_cost: int,
    steps: int,
    scratch: Scratch,
) -> tuple[int, int, int, int]:
    """Return the best cut of a box with these tiles and flows: its gain, the trips it suppresses, its axis, its place.

    A side without k people in any group is suppressed; empty strips are cut off too, so that it is unknown whether anyone is in
    it. The best cut saves most cost, less what the trips are worth that it suppresses, of which
    there are at most `rest`. The gain is 0 if there is none. Axes are x and y of origins, x and y of destinations; a place is the
    last position before the cut.
    """
    found = (0, 0, 0, 0)
    best = 0.0
    m = len(chosen)
    within = whole_plane()
    at = np.empty(m, np.int64)
    for axis in range(4):
        for i in range(m):
            flow = chosen[i]
            at[i] = position(tiles, axis % 2, flows.origin[flow] if axis < 2 else flows.destination[flow])
        order = np.argsort(at, kind="mergesort")
        if at[order[0]] == at[order[m - 1]]:
            continue
        ordered, from_end = np.empty(m, np.int64), np.empty(m, np.int64)
        for i in range(m):
            ordered[i] = from_end[m - 1 - i] = chosen[order[i]]
        before, first_volumes = _published(flows, ordered, rules.k, scratch)
        after, last_volumes = _published(flows, from_end, rules.k, scratch)
        around_first = _bounds_of_first(flows, ordered, tiles)
        around_last = _bounds_of_first(flows, from_end, tiles)
        volume = 0
        for flow in ordered:
            volume += flows.volume[flow]
        for i in range(1, m):
            low, high = at[order[i - 1]], at[order[i]]
            if low == high:
                continue
            first, last = before[i] >= rules.k, after[m - i] >= rules.k
            lost = volume - first_volumes[i] - last_volumes[m - i]
            if not (first or last) or lost > rest:
                continue
            for place in _boundaries(origins if axis < 2 else destinations, tiles, axis % 2, low, high, rules):
                new, allowed = 0, True
                if first:
                    within[2 * axis + 1] = place
                    around = around_first[8 * i : 8 * i + 8]
                    part = piece_cost(
                        origins,
                        destinations,
                        flows,
                        ordered[:i],
                        first_volumes[i],
                        tiles,
                        rules,
                        around,
                        within,
                        trip_cost,
                        steps,
                        scratch,
                    )
                    within[2 * axis + 1] = FAR
                    allowed = part != NOT_ALLOWED
                    new += part
                if last and allowed:
                    within[2 * axis] = place + 1
                    around = around_last[8 * (m - i) : 8 * (m - i) + 8]
                    part = piece_cost(
                        origins,
                        destinations,
                        flows,
                        ordered[i:],
                        last_volumes[m - i],
                        tiles,
                        rules,
                        around,
                        within,
                        trip_cost,
                        steps,
                        scratch,
                    )
                    within[2 * axis] = -FAR
                    allowed = part != NOT_ALLOWED
                    new += part
                gain = cost - new - rules.lost_cost * lost
                worth = gain - rules.multiplier * lost
                earlier = worth == best and axis == found[2] and place < found[3]
                if allowed and gain > 0 and (worth > best or earlier):
                    best = worth
                    found = (gain, lost, axis, place)
    return found
