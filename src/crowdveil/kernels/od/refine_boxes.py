"""Cut published boxes again at any tile boundary, the cut that gains most for each suppressed trip first."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import end_if_stopped, kernel
from crowdveil.kernels._types import Floats, Ints
from crowdveil.kernels.growable import grow
from crowdveil.kernels.od.best_cut import (
    best_cut,
    crowd_of,
    inside,
    piece_cost,
    position,
    side_bounds,
    tiles_around,
    whole_plane,
)
from crowdveil.kernels.od.cut_structures import (
    CUT,
    ENDS,
    LEFTS,
    PIECES,
    USED,
    BoxContents,
    CutFlows,
    CutRules,
    Pieces,
    TilePlaces,
)
from crowdveil.kernels.od.pair_queue import pop, push
from crowdveil.kernels.od.structures import MatrixRows


@kernel
def flows_of_boxes(
    rows: MatrixRows, o_offsets: Ints, o_tiles: Ints, d_offsets: Ints, d_tiles: Ints
) -> tuple[Ints, Ints]:
    """Return the flows of each box, as offsets and flows, from the tiles of its origins and destinations."""
    n = len(o_offsets) - 1
    offsets, found = np.zeros(n + 1, np.int64), np.empty(16, np.int64)
    marked = np.full(len(rows.offsets), -1, np.int64)
    count = 0
    for i in range(n):
        for e in range(d_offsets[i], d_offsets[i + 1]):
            marked[d_tiles[e]] = i
        for e in range(o_offsets[i], o_offsets[i + 1]):
            for row in range(rows.offsets[o_tiles[e]], rows.offsets[o_tiles[e] + 1]):
                if marked[rows.tile[row]] == i:
                    found = grow(found, count + 1)
                    found[count] = row
                    count += 1
        offsets[i + 1] = count
    return offsets, found[:count].copy()


@kernel
def _store(pool: Ints, used: int, parts: tuple[Ints, Ints, Ints], ends: Ints) -> Ints:
    """Append tiles and flows to the pool, and fill in where each begins and ends."""
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
        pool, pieces.ends, pieces.volume, pieces.crowd, pieces.cost, pieces.cut, pieces.published, left, pieces.counts
    )  # fmt: skip


@kernel
def _cut_off(pieces: Pieces, parts: tuple[Ints, Ints, Ints]) -> Pieces:
    """Keep a piece that is not published."""
    if len(parts[0]) == 0 or len(parts[1]) == 0:
        return pieces
    at = ENDS * pieces.counts[LEFTS]
    left = grow(pieces.left, at + ENDS)
    pool = _store(pieces.pool, pieces.counts[USED], parts, left[at : at + ENDS])
    pieces.counts[USED] = left[at + ENDS - 1]
    pieces.counts[LEFTS] += 1
    return _with_pool(pieces, pool, left)


@kernel
def _within(held: Ints, tiles: TilePlaces, bounds: Ints, side: int, wanted: bool) -> Ints:
    """Return the tiles within bounds, or those that are not."""
    kept, count = np.empty(len(held), np.int64), 0
    for tile in held:
        if inside(tile, tiles, bounds, side) == wanted:
            kept[count] = tile
            count += 1
    return kept[:count]


@kernel
def _add(
    pieces: Pieces,
    parts: tuple[Ints, Ints, Ints],
    flows: CutFlows,
    tiles: TilePlaces,
    rules: CutRules,
    want_left: bool,
    seen: Ints,
) -> Pieces:
    """Add a piece: trimmed, if that is wanted, and published, if it reaches k; else it is cut off."""
    origins, destinations, chosen = parts
    crowd = crowd_of(flows, chosen, seen)
    if crowd < rules.k:
        return _cut_off(pieces, parts) if want_left else pieces
    around, everywhere = tiles_around(flows, chosen, tiles), whole_plane()
    trim_o = side_bounds(origins, tiles, rules, around, everywhere, 0)[0]
    trim_d = side_bounds(destinations, tiles, rules, around, everywhere, 1)[0]
    bounds_o, bounds_d = (around if trim_o else everywhere), (around if trim_d else everywhere)
    kept_o, kept_d = _within(origins, tiles, bounds_o, 0, True), _within(destinations, tiles, bounds_d, 1, True)
    if want_left:
        # Strips without flows: rest of the origins to all destinations, and the kept origins to the rest of the destinations.
        pieces = _cut_off(pieces, (_within(origins, tiles, bounds_o, 0, False), destinations, chosen[:0]))
        pieces = _cut_off(pieces, (kept_o, _within(destinations, tiles, bounds_d, 1, False), chosen[:0]))
    new = pieces.counts[PIECES]
    ends = pieces.ends[ENDS * new : ENDS * new + ENDS]
    pool = _store(pieces.pool, pieces.counts[USED], (kept_o, kept_d, chosen), ends)
    volume = 0
    for flow in chosen:
        volume += flows.volume[flow]
    pieces.volume[new], pieces.crowd[new] = volume, crowd
    pieces.cost[new] = piece_cost(origins, destinations, flows, chosen, volume, tiles, rules, around, everywhere)
    pieces.published[new] = 1
    pieces.counts[USED] = ends[ENDS - 1]
    pieces.counts[PIECES] += 1
    return _with_pool(pieces, pool, pieces.left)


@kernel
def _content(pieces: Pieces, piece: int) -> tuple[Ints, Ints, Ints]:
    """Return the origins, the destinations and the flows of a piece."""
    e = pieces.ends[ENDS * piece : ENDS * piece + ENDS]
    return pieces.pool[e[0] : e[1]], pieces.pool[e[2] : e[3]], pieces.pool[e[4] : e[5]]


@kernel
def _tiles_on_side(held: Ints, tiles: TilePlaces, axis: int, place: int, first: bool) -> Ints:
    """Return the tiles before a cut, or after it."""
    kept, count = np.empty(len(held), np.int64), 0
    for tile in held:
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
    pieces: Pieces, piece: int, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, seen: Ints
) -> float:
    """Find the best cut of a piece; return its place in the queue, smaller is earlier, or infinity if there is none."""
    origins, destinations, chosen = _content(pieces, piece)
    if len(chosen) < 2:
        return np.inf
    gain, lost, axis, place = best_cut(
        origins, destinations, chosen, pieces.cost[piece], flows, tiles, rules, rest, seen
    )
    cut = pieces.cut[CUT * piece : CUT * piece + CUT]
    cut[0], cut[1], cut[2], cut[3] = gain, lost, axis, place
    if gain <= 0:
        return np.inf
    return -np.inf if lost == 0 else -gain / lost


@kernel
def _cut_pieces(
    pieces: Pieces, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, want_left: bool, seen: Ints
) -> tuple[Pieces, int]:
    """Make the best cuts of all pieces, until none gains or can be afforded; return the pieces and the rest of the budget."""
    most = len(pieces.cost)
    keys, owners, itself = np.empty(most, np.float64), np.empty(most, np.int64), np.arange(most)
    size = 0
    for piece in range(pieces.counts[PIECES]):
        if pieces.published[piece]:
            end_if_stopped()
            size = _enqueue(
                keys, owners, itself, size, piece, _search_cut(pieces, piece, flows, tiles, rules, rest, seen)
            )
    while size > 0:
        end_if_stopped()
        piece = owners[0]
        size = pop(keys, owners, itself, size)
        lost = pieces.cut[CUT * piece + 1]
        if lost > rest:
            # Trips were spent since: the best cut that is still possible.
            size = _enqueue(
                keys, owners, itself, size, piece, _search_cut(pieces, piece, flows, tiles, rules, rest, seen)
            )
            continue
        rest -= lost
        pieces.published[piece] = 0
        known = pieces.counts[PIECES]
        pieces = _add(pieces, _side_of_cut(pieces, piece, flows, tiles, True), flows, tiles, rules, want_left, seen)
        pieces = _add(pieces, _side_of_cut(pieces, piece, flows, tiles, False), flows, tiles, rules, want_left, seen)
        for new in range(known, pieces.counts[PIECES]):
            size = _enqueue(keys, owners, itself, size, new, _search_cut(pieces, new, flows, tiles, rules, rest, seen))
    return pieces, rest


@kernel
def _enqueue(keys: Floats, owners: Ints, itself: Ints, size: int, piece: int, key: float) -> int:
    """Put a piece into the queue if it can be cut; return the size of the queue."""
    return size if key == np.inf else push(keys, owners, itself, size, key, piece)


@kernel
def refine_boxes(
    boxes: BoxContents, flows: CutFlows, tiles: TilePlaces, rules: CutRules, rest: int, want_left: bool
) -> Pieces:
    """Cut boxes until no cut gains, or can be afforded with the `rest` of the budget.

    Pieces that are cut off are kept only if they are wanted.
    """
    seen = np.zeros(int(flows.member.max()) + 2 if len(flows.member) else 1, np.int64)
    n = len(boxes.origin_offsets) - 1
    most = 2 * len(boxes.flows) + n
    figures = np.zeros((4, most), np.int64)
    pieces = Pieces(
        np.empty(4096, np.int64), np.empty(ENDS * most, np.int64), figures[0], figures[1], figures[2],
        np.empty(CUT * most, np.int64), figures[3], np.empty(ENDS * 64, np.int64), np.zeros(3, np.int64),
    )  # fmt: skip
    for i in range(n):
        parts = (
            boxes.origin_tiles[boxes.origin_offsets[i] : boxes.origin_offsets[i + 1]].copy(),
            boxes.destination_tiles[boxes.destination_offsets[i] : boxes.destination_offsets[i + 1]].copy(),
            boxes.flows[boxes.flow_offsets[i] : boxes.flow_offsets[i + 1]].copy(),
        )
        pieces = _add(pieces, parts, flows, tiles, rules, want_left, seen)
    pieces, rest = _cut_pieces(pieces, flows, tiles, rules, rest, want_left, seen)
    if rest > 0 and rules.multiplier > 0:
        # What is left is spent on cuts that save less for a trip.
        any_gain = CutRules(
            rules.k, rules.tiles, rules.inhabited, rules.pois, rules.categories, rules.trim, rules.scale, rules.lost_cost, 0.0
        )  # fmt: skip
        pieces, rest = _cut_pieces(pieces, flows, tiles, any_gain, rest, want_left, seen)
    return pieces
