"""Cut published boxes again at any tile boundary, the cut that gains most for each suppressed trip first."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.best_cut import (
    CUT,
    ENDS,
    LEFTS,
    OF_BOX,
    PIECES,
    USED,
    BoxContents,
    CutFlows,
    CutRules,
    Pieces,
    Scratch,
    TilePlaces,
    best_cut,
    count_groups,
    inside,
    piece_cost,
    position,
    side_bounds,
    tiles_around,
    whole_plane,
)


@kernel
def flows_of_boxes(
    offsets_of_origins: Ints,
    destination: Ints,
    step: Ints,
    first: Ints,
    last: Ints,
    o_offsets: Ints,
    o_tiles: Ints,
    d_offsets: Ints,
    d_tiles: Ints,
) -> tuple[Ints, Ints]:
    """Return the flows of each box, as offsets and flows, from the tiles of its origins and destinations and its time steps.

    Flows are in order of their origins, with destination and time step of each; those of a box are from `first` to before `last`.
    """
    n = len(o_offsets) - 1
    offsets, found = np.zeros(n + 1, np.int64), np.empty(16, np.int64)
    marked = np.full(len(offsets_of_origins), -1, np.int64)
    count = 0
    for i in range(n):
        for e in range(d_offsets[i], d_offsets[i + 1]):
            marked[d_tiles[e]] = i
        for e in range(o_offsets[i], o_offsets[i + 1]):
            for row in range(offsets_of_origins[o_tiles[e]], offsets_of_origins[o_tiles[e] + 1]):
                if marked[destination[row]] == i and first[i] <= step[row] < last[i]:
                    found = grow(found, count + 1)
                    found[count] = row
                    count += 1
        offsets[i + 1] = count
    return offsets, found[:count].copy()


@kernel
def _store(pool: Ints, used: int, parts: tuple[Ints, Ints, Ints], box: int, ends: Ints) -> Ints:
    """Append tiles and flows to the pool, and fill in where each begins and ends, and the box."""
    ends[OF_BOX] = box
    for which in range(3):
        ends[2 * which] = used
        pool = grow(pool, used + len(parts[which]))
        for value in parts[which]:
            pool[used] = value
            used += 1
        ends[2 * which + 1] = used
    return pool


@kernel
def _with_pool(pieces: Pieces, pool: Ints, left: Ints) -> Pieces:
    """Return pieces with a pool, and a list of pieces that are cut off, which may be larger copies of those before."""
    return Pieces(
        pool, pieces.ends, pieces.volume, pieces.crowd, pieces.cost, pieces.cut, pieces.published, left, pieces.counts,
        pieces.trip_cost, pieces.steps,
    )  # fmt: skip


@kernel
def _cut_off(pieces: Pieces, parts: tuple[Ints, Ints, Ints], box: int) -> Pieces:
    """Keep a piece that is not published."""
    if len(parts[0]) == 0 or len(parts[1]) == 0:
        return pieces
    at = ENDS * pieces.counts[LEFTS]
    left = grow(pieces.left, at + ENDS)
    pool = _store(pieces.pool, pieces.counts[USED], parts, box, left[at : at + ENDS])
    pieces.counts[USED] = left[at + OF_BOX - 1]
    pieces.counts[LEFTS] += 1
    return _with_pool(pieces, pool, left)


@kernel
def _within(side_tiles: Ints, tiles: TilePlaces, bounds: Ints, side: int, wanted: bool) -> Ints:
    """Return the tiles within bounds, or those that are not."""
    kept, count = np.empty(len(side_tiles), np.int64), 0
    for tile in side_tiles:
        if inside(tile, tiles, bounds, side) == wanted:
            kept[count] = tile
            count += 1
    return kept[:count]


@kernel
def _add(
    pieces: Pieces,
    parts: tuple[Ints, Ints, Ints],
    box: int,
    flows: CutFlows,
    tiles: TilePlaces,
    rules: CutRules,
    want_left: bool,
    scratch: Scratch,
) -> Pieces:
    """Add a piece: trimmed, and published, if it reaches k in any group; else it is cut off."""
    origins, destinations, _ = parts
    crowd = count_groups(flows, parts[2], scratch)
    if crowd < rules.k:
        return _cut_off(pieces, parts, box) if want_left else pieces
    # Groups below k stay so in every part: without their flows, they influence no area.
    chosen = _in_large_groups(parts[2], flows.group, scratch.crowd, rules.k)
    around, everywhere = tiles_around(flows, chosen, tiles), whole_plane()
    trim_o = side_bounds(origins, tiles, rules, around, everywhere, 0)[0]
    trim_d = side_bounds(destinations, tiles, rules, around, everywhere, 1)[0]
    bounds_o, bounds_d = (around if trim_o else everywhere), (around if trim_d else everywhere)
    kept_o, kept_d = _within(origins, tiles, bounds_o, 0, True), _within(destinations, tiles, bounds_d, 1, True)
    if want_left:
        # Strips without flows: rest of the origins to all destinations, and the kept origins to the rest of the destinations.
        pieces = _cut_off(pieces, (_within(origins, tiles, bounds_o, 0, False), destinations, chosen[:0]), box)
        pieces = _cut_off(pieces, (kept_o, _within(destinations, tiles, bounds_d, 1, False), chosen[:0]), box)
    new = pieces.counts[PIECES]
    ends = pieces.ends[ENDS * new : ENDS * new + ENDS]
    pool = _store(pieces.pool, pieces.counts[USED], (kept_o, kept_d, chosen), box, ends)
    volume = 0
    for flow in chosen:
        volume += flows.volume[flow]
    pieces.volume[new], pieces.crowd[new] = volume, crowd
    trip_cost, steps = pieces.trip_cost[box], pieces.steps[box]
    pieces.cost[new] = piece_cost(
        origins, destinations, flows, chosen, volume, tiles, rules, around, everywhere, trip_cost, steps, scratch
    )
    pieces.published[new] = 1
    pieces.counts[USED] = ends[OF_BOX - 1]
    pieces.counts[PIECES] += 1
    return _with_pool(pieces, pool, pieces.left)


@kernel
def _in_large_groups(chosen: Ints, group: Ints, crowd: Ints, k: int) -> Ints:
    """Return the flows of groups with k people, from the crowd of each group."""
    kept, count = np.empty(len(chosen), np.int64), 0
    for flow in chosen:
        if crowd[group[flow]] >= k:
            kept[count] = flow
            count += 1
    return kept[:count]


@kernel
def _content(pieces: Pieces, piece: int) -> tuple[Ints, Ints, Ints]:
    """Return the origins, the destinations and the flows of a piece."""
    e = pieces.ends[ENDS * piece : ENDS * piece + ENDS]
    return pieces.pool[e[0] : e[1]], pieces.pool[e[2] : e[3]], pieces.pool[e[4] : e[5]]


@kernel
def _tiles_on_side(side_tiles: Ints, tiles: TilePlaces, axis: int, place: int, first: bool) -> Ints:
    """Return the tiles before a cut, or after it."""
    kept, count = np.empty(len(side_tiles), np.int64), 0
    for tile in side_tiles:
        if (position(tiles, axis, tile) <= place) == first:
            kept[count] = tile
            count += 1
    return kept[:count]


@kernel
def _flows_on_side(chosen: Ints, end: Ints, tiles: TilePlaces, axis: int, place: int, first: bool) -> Ints:
    """Return the flows with their origin (or destination), in `end`, before a cut, or after it."""
    kept, count = np.empty(len(chosen), np.int64), 0
    for flow in chosen:
        if (position(tiles, axis, end[flow]) <= place) == first:
            kept[count] = flow
            count += 1
    return kept[:count]


@kernel
def _side_of_cut(
    pieces: Pieces, piece: int, flows: CutFlows, tiles: TilePlaces, first: bool
) -> tuple[Ints, Ints, Ints]:
    """Return the tiles and flows of a piece before its best cut, or after it."""
    origins, destinations, chosen = _content(pieces, piece)
    axis, place = pieces.cut[CUT * piece + 2], pieces.cut[CUT * piece + 3]
    end = flows.origin if axis < 2 else flows.destination
    kept = _flows_on_side(chosen, end, tiles, axis % 2, place, first)
    if axis < 2:
        return _tiles_on_side(origins, tiles, axis, place, first), destinations, kept
    return origins, _tiles_on_side(destinations, tiles, axis - 2, place, first), kept


@kernel
def _search_cut(
    pieces: Pieces, piece: int, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, scratch: Scratch
) -> float:
    """Find the best cut of a piece; return its place in the queue, smaller is earlier, or infinity if there is none."""
    origins, destinations, chosen = _content(pieces, piece)
    if len(chosen) < 2:
        return np.inf
    box = pieces.ends[ENDS * piece + OF_BOX]
    gain, lost, axis, place = best_cut(
        origins, destinations, chosen, pieces.cost[piece], flows, tiles, rules, rest, pieces.trip_cost[box],
        pieces.steps[box], scratch,
    )  # fmt: skip
    cut = pieces.cut[CUT * piece : CUT * piece + CUT]
    cut[0], cut[1], cut[2], cut[3] = gain, lost, axis, place
    if gain <= 0:
        return np.inf
    return -np.inf if lost == 0 else -gain / lost


@kernel
def _cut_pieces(
    pieces: Pieces, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, want_left: bool, scratch: Scratch
) -> tuple[Pieces, int]:
    """Make the best cuts of all pieces, until none gains or can be afforded; return the pieces and the rest of the budget."""
    queue = [(0.0, 0) for _ in range(0)]  # an empty list of pairs
    for piece in range(pieces.counts[PIECES]):
        if pieces.published[piece]:
            _enqueue(queue, pieces, piece, flows, tiles, rules, rest, scratch)
    while len(queue) > 0:
        _, piece = heappop(queue)
        lost = pieces.cut[CUT * piece + 1]
        if lost > rest:
            # Trips were spent since: the best cut that is still possible.
            _enqueue(queue, pieces, piece, flows, tiles, rules, rest, scratch)
            continue
        rest -= lost
        pieces.published[piece] = 0
        known = pieces.counts[PIECES]
        box = pieces.ends[ENDS * piece + OF_BOX]
        for first in (True, False):
            side = _side_of_cut(pieces, piece, flows, tiles, first)
            pieces = _add(pieces, side, box, flows, tiles, rules, want_left, scratch)
        for new in range(known, pieces.counts[PIECES]):
            _enqueue(queue, pieces, new, flows, tiles, rules, rest, scratch)
    return pieces, rest


@kernel
def _enqueue(
    queue: list[tuple[float, int]], pieces: Pieces, piece: int, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Find the best cut of a piece, and put the piece into the queue if there is one."""
    key = _search_cut(pieces, piece, flows, tiles, rules, rest, scratch)
    if key < np.inf:
        heappush(queue, (key, piece))


@kernel
def refine_boxes(
    boxes: BoxContents, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, want_left: bool
) -> Pieces:
    """Cut boxes until no cut gains, or can be afforded with the `rest` of the budget.

    Pieces that are cut off are kept only if they are wanted.
    """
    people, groups = int(flows.member.max()) + 1 if len(flows.member) else 0, int(flows.group.max()) + 1
    counts = np.zeros((4, groups), np.int64)
    scratch = Scratch(np.zeros(people + 1, np.int64), counts[0], counts[1], counts[2], counts[3])
    n = len(boxes.origin_offsets) - 1
    most = 2 * len(boxes.flows) + n
    figures = np.zeros((4, most), np.int64)
    pieces = Pieces(
        np.empty(4096, np.int64), np.empty(ENDS * most, np.int64), figures[0], figures[1], figures[2],
        np.empty(CUT * most, np.int64), figures[3], np.empty(ENDS * 64, np.int64), np.zeros(3, np.int64),
        boxes.trip_cost, boxes.steps,
    )  # fmt: skip
    for i in range(n):
        parts = (
            boxes.origin_tiles[boxes.origin_offsets[i] : boxes.origin_offsets[i + 1]].copy(),
            boxes.destination_tiles[boxes.destination_offsets[i] : boxes.destination_offsets[i + 1]].copy(),
            boxes.flows[boxes.flow_offsets[i] : boxes.flow_offsets[i + 1]].copy(),
        )
        pieces = _add(pieces, parts, i, flows, tiles, rules, want_left, scratch)
    pieces, rest = _cut_pieces(pieces, flows, tiles, rules, rest, want_left, scratch)
    if rest > 0 and rules.multiplier > 0:
        # Spend the rest on cuts that save less for a trip.
        any_gain = CutRules(rules.k, rules.tiles, rules.scale, rules.lost_cost, 0.0)
        pieces, rest = _cut_pieces(pieces, flows, tiles, any_gain, rest, want_left, scratch)
    return pieces
