"""Boxes of a matrix over dyadic regions, which can be halved by more than one split."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import grow, kernel
from crowdveil.kernels._types import Ints
from crowdveil.kernels.od.structures import (
    BY_DESTINATION,
    BY_ORIGIN,
    BoxArrays,
    DyadicArrays,
    MatrixRows,
    Splits,
    cut_boxes,
    new_boxes,
    new_splits,
)


@kernel
def build_dyadic_boxes(
    rows: MatrixRows,
    pair_person: Ints,
    pair_origin: Ints,
    pair_destination: Ints,
    arrays: DyadicArrays,
    o_large_enough: Ints,
    d_large_enough: Ints,
    k: int,
    most_words: int,
) -> tuple[bool, BoxArrays, Splits]:
    """Build all boxes (origin region, destination region) with a crowd of at least k, as `tree_boxes.build_boxes` does.

    Parameters
    ----------
    pair_person, pair_origin, pair_destination
        Who went from which tile to which, sorted by person, each once; empty where people are not known.
    o_large_enough, d_large_enough
        Which regions may be published on either side; a region that may not is no half of one that may.
    most_words
        Words of 64 bits that boxes, splits and links may take.

    Returns whether that was enough, the boxes, and their splits. Nothing is complete where it was not.
    """
    row_offsets, row_tile, row_volume, row_crowd = rows
    tile_offsets, tiles, halving_offsets, first, second = arrays
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
    box_o, box_d, box_v, box_u, box_cells = new_boxes(1024)
    split_offsets, split_kind, split_lost, link_offsets, link = new_splits(1024, 1024, 1024)
    refs, made, split, links = 0, 0, 0, 0

    for a in range(regions):
        if not o_large_enough[a]:
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
        # Grown for all boxes of this origin at once: asking box by box takes longer than the rest.
        box_o, box_d = grow(box_o, made + regions), grow(box_d, made + regions)
        box_v, box_u = grow(box_v, made + regions), grow(box_u, made + regions)
        box_cells, split_offsets = grow(box_cells, made + regions), grow(split_offsets, made + regions + 1)
        split_kind, split_lost = grow(split_kind, split + 4 * regions), grow(split_lost, split + 4 * regions)
        link_offsets, link = grow(link_offsets, split + 4 * regions + 1), grow(link, links + 8 * regions)
        ref_region, ref_box = grow(ref_region, refs + regions), grow(ref_box, refs + regions)
        ref_start[a] = refs
        o_halvings = halving_offsets[a + 1] - halving_offsets[a]
        for w in range(o_halvings):
            pointer[2 * w] = ref_start[first[halving_offsets[a] + w]]
            pointer[2 * w + 1] = ref_start[second[halving_offsets[a] + w]]
        for b in range(regions):
            if halving_offsets[b + 1] > halving_offsets[b]:
                left, right = first[halving_offsets[b]], second[halving_offsets[b]]
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
            if crowd[b] < k or not d_large_enough[b]:
                continue
            # A half with all the trips is at least as good and smaller: it stands for this box.
            same, first_split, first_link = -1, split, links
            for w in range(halving_offsets[b], halving_offsets[b + 1]):
                lost = volume[b]
                for half in (first[w], second[w]):
                    if where[half] >= 0:
                        link[links] = where[half]
                        links += 1
                        lost -= volume[half]
                        if volume[half] == volume[b]:
                            same = where[half]
                split_kind[split], split_lost[split] = BY_DESTINATION, lost
                split += 1
                link_offsets[split] = links
            for w in range(o_halvings):
                lost = volume[b]
                for side in range(2):
                    half = first[halving_offsets[a] + w] if side == 0 else second[halving_offsets[a] + w]
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
                split_kind[split], split_lost[split] = BY_ORIGIN, lost
                split += 1
                link_offsets[split] = links
            if same >= 0:
                split, links = first_split, first_link
            else:
                same = made
                box_o[made], box_d[made], box_v[made], box_u[made] = a, b, volume[b], crowd[b]
                box_cells[made] = cells[b]
                made += 1
                split_offsets[made] = split
            where[b] = same
            ref_region[refs], ref_box[refs] = b, same
            refs += 1
        ref_end[a] = refs
        for i in range(ref_start[a], refs):
            where[ref_region[i]] = -1
        if 6 * made + 3 * split + links + 2 * refs > most_words:
            refs = 0
            break
    enough = refs > 0 or made == 0
    boxes = BoxArrays(box_o, box_d, box_v, box_u, box_cells)
    splits = Splits(split_offsets, split_kind, split_lost, link_offsets, link)
    kept, kept_splits = cut_boxes(boxes, splits, ref_box[refs - 1] + 1 if refs > 0 else 0)
    return enough, kept, kept_splits
