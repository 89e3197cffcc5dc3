"""The boxes of a matrix over regions that can be halved in several ways."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.growable import grow

BY_DESTINATION, BY_ORIGIN = 2, 4


@kernel
def build_dyadic_boxes(
    row_offsets: Ints,
    row_tile: Ints,
    row_volume: Ints,
    row_crowd: Ints,
    pair_person: Ints,
    pair_origin: Ints,
    pair_destination: Ints,
    tile_offsets: Ints,
    tiles: Ints,
    way_offsets: Ints,
    first: Ints,
    second: Ints,
    o_fits: Ints,
    d_fits: Ints,
    k: int,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """All boxes (origin region, destination region) with a crowd of at least k, in the form of `tree_boxes.build_boxes`.

    Parameters
    ----------
    row_offsets, row_tile, row_volume, row_crowd
        By origin tile: destination tile, trips and, where crowds add up, the crowd of each row.
    pair_person, pair_origin, pair_destination
        Who went from where to where, sorted by person, each once; empty where people are not known.
    tile_offsets, tiles, way_offsets, first, second
        The regions, smaller ones first.
    o_fits, d_fits
        Which of them may be published on either side; a region that holds one that may, may too.
    """
    regions, n_tiles = len(tile_offsets) - 1, len(row_offsets) - 1
    with_people, people = len(pair_person) > 0, 0
    for e in range(len(pair_person)):
        people = max(people, pair_person[e] + 1)
    # The regions that hold each tile, for counting people.
    holder_offsets = np.zeros(n_tiles + 1, np.int64)
    for e in range(len(tiles)):
        holder_offsets[tiles[e] + 1] += 1
    for t in range(n_tiles):
        holder_offsets[t + 1] += holder_offsets[t]
    holder, place = np.empty(len(tiles), np.int64), holder_offsets[:-1].copy()
    for region in range(regions):
        for e in range(tile_offsets[region], tile_offsets[region + 1]):
            holder[place[tiles[e]]] = region
            place[tiles[e]] += 1
    volume_to, crowd_to = np.zeros(n_tiles, np.int64), np.zeros(n_tiles, np.int64)
    cells_to = np.zeros(n_tiles, np.int64)
    volume, crowd = np.zeros(regions, np.int64), np.zeros(regions, np.int64)
    cells = np.zeros(regions, np.int64)
    inside, counted = np.zeros(n_tiles, np.bool_), np.full(regions, -1, np.int64)
    where = np.full(regions, -1, np.int64)
    # The boxes of each region of origins by region of destinations, its own or those that stand for them.
    ref_start, ref_end = np.zeros(regions, np.int64), np.zeros(regions, np.int64)
    ref_region, ref_box = np.empty(1024, np.int64), np.empty(1024, np.int64)
    pointer = np.zeros(4, np.int64)
    room = 1024
    box_o, box_d = np.empty(room, np.int64), np.empty(room, np.int64)
    box_v, box_u = np.empty(room, np.int64), np.empty(room, np.int64)
    box_cells = np.empty(room, np.int64)
    way_off, link_off = np.zeros(room + 1, np.int64), np.zeros(room + 1, np.int64)
    way_kind, way_lost, link = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    refs, boxes, ways, links = 0, 0, 0, 0

    for a in range(regions):
        if not o_fits[a]:
            ref_start[a], ref_end[a] = refs, refs
            continue
        volume_to[:] = 0
        crowd_to[:] = 0
        cells_to[:] = 0
        for e in range(tile_offsets[a], tile_offsets[a + 1]):
            for row in range(row_offsets[tiles[e]], row_offsets[tiles[e] + 1]):
                volume_to[row_tile[row]] += row_volume[row]
                crowd_to[row_tile[row]] += row_crowd[row]
                cells_to[row_tile[row]] += 1
        if with_people:
            crowd[:] = 0
            for e in range(tile_offsets[a], tile_offsets[a + 1]):
                inside[tiles[e]] = True
            for e in range(len(pair_person)):
                if inside[pair_origin[e]]:
                    mark = a * people + pair_person[e]
                    for h in range(holder_offsets[pair_destination[e]], holder_offsets[pair_destination[e] + 1]):
                        if counted[holder[h]] != mark:
                            counted[holder[h]] = mark
                            crowd[holder[h]] += 1
            for e in range(tile_offsets[a], tile_offsets[a + 1]):
                inside[tiles[e]] = False
        # Room for all that may come of this origin at once: asking box by box takes longer than the rest.
        box_o, box_d = grow(box_o, boxes + regions), grow(box_d, boxes + regions)
        box_v, box_u = grow(box_v, boxes + regions), grow(box_u, boxes + regions)
        box_cells, way_off = grow(box_cells, boxes + regions), grow(way_off, boxes + regions + 1)
        way_kind, way_lost = grow(way_kind, ways + 4 * regions), grow(way_lost, ways + 4 * regions)
        link_off, link = grow(link_off, ways + 4 * regions + 1), grow(link, links + 8 * regions)
        ref_region, ref_box = grow(ref_region, refs + regions), grow(ref_box, refs + regions)
        ref_start[a] = refs
        o_ways = way_offsets[a + 1] - way_offsets[a]
        for w in range(o_ways):
            pointer[2 * w] = ref_start[first[way_offsets[a] + w]]
            pointer[2 * w + 1] = ref_start[second[way_offsets[a] + w]]
        for b in range(regions):
            if way_offsets[b + 1] > way_offsets[b]:
                left, right = first[way_offsets[b]], second[way_offsets[b]]
                volume[b] = volume[left] + volume[right]
                cells[b] = cells[left] + cells[right]
                if not with_people:
                    crowd[b] = crowd[left] + crowd[right]
            else:
                # Tiles that lie on one place cannot be halved, and may be several.
                volume[b] = 0
                cells[b] = 0
                total = 0
                for e in range(tile_offsets[b], tile_offsets[b + 1]):
                    volume[b] += volume_to[tiles[e]]
                    total += crowd_to[tiles[e]]
                    cells[b] += cells_to[tiles[e]]
                if not with_people:
                    crowd[b] = total
            if crowd[b] < k or not d_fits[b]:
                continue
            # A half with all the trips is as good in every way and smaller: it stands for this box.
            same, first_way, first_link = -1, ways, links
            for w in range(way_offsets[b], way_offsets[b + 1]):
                lost = volume[b]
                for half in (first[w], second[w]):
                    if where[half] >= 0:
                        link[links] = where[half]
                        links += 1
                        lost -= volume[half]
                        if volume[half] == volume[b]:
                            same = where[half]
                way_kind[ways], way_lost[ways] = BY_DESTINATION, lost
                ways += 1
                link_off[ways] = links
            for w in range(o_ways):
                lost = volume[b]
                for side in range(2):
                    half = first[way_offsets[a] + w] if side == 0 else second[way_offsets[a] + w]
                    at = pointer[2 * w + side]
                    while at < ref_end[half] and ref_region[at] < b:
                        at += 1
                    pointer[2 * w + side] = at
                    if at < ref_end[half] and ref_region[at] == b:
                        box = ref_box[at]
                        link[links] = box
                        links += 1
                        lost -= box_v[box]
                        if box_v[box] == volume[b]:
                            same = box
                way_kind[ways], way_lost[ways] = BY_ORIGIN, lost
                ways += 1
                link_off[ways] = links
            if same >= 0:
                ways, links = first_way, first_link
            else:
                same = boxes
                box_o[boxes], box_d[boxes], box_v[boxes], box_u[boxes] = a, b, volume[b], crowd[b]
                box_cells[boxes] = cells[b]
                boxes += 1
                way_off[boxes] = ways
            where[b] = same
            ref_region[refs], ref_box[refs] = b, same
            refs += 1
        ref_end[a] = refs
        for i in range(ref_start[a], refs):
            where[ref_region[i]] = -1
    # The box of all trips is the last that was looked up; what came after it is not part of it.
    if refs > 0:
        boxes = ref_box[refs - 1] + 1
        ways = way_off[boxes]
        links = link_off[ways]
    return (
        box_o[:boxes].copy(),
        box_d[:boxes].copy(),
        box_v[:boxes].copy(),
        box_u[:boxes].copy(),
        box_cells[:boxes].copy(),
        way_off[: boxes + 1].copy(),
        way_kind[:ways].copy(),
        way_lost[:ways].copy(),
        link_off[: ways + 1].copy(),
        link[:links].copy(),
    )
