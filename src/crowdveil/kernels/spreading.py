"""Spread rows of a release over pairs of zones by their shares, without a matrix."""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.kernels._types import Floats, Indices, Ints
from crowdveil.kernels.od.structures import ZoneShares


@kernel
def spread(
    group_offsets: Ints,
    origin: Indices,
    destination: Indices,
    volume: Ints,
    steps: Ints,
    all_steps: Ints,
    origin_shares: ZoneShares,
    destination_shares: ZoneShares,
    o_zones: int,
    d_zones: int,
    most: int,
) -> tuple[Ints, Indices, Indices, Floats, Ints, Ints]:
    """Spread the volumes of rows over the pairs of zones that they touch: estimate, lower and upper bound of each pair.

    Rows come in groups, with the areas at their ends; `steps` of the `all_steps` time steps of a row are in the group. Pairs
    are by group, origin and destination; `most` is no fewer than come out.

    Within a group, rows are put into lists by the zones that they start in, and then one origin zone after the other adds up
    its rows in a line of destinations: memory is that of the rows and one line. A share stays a part of a whole until the
    end, so that a row on whole tiles is divided once, by the number of its cells, as a dense matrix would have it.
    """
    o_offsets, o_zone, o_part, o_whole, o_inside = origin_shares
    d_offsets, d_zone, d_part, d_whole, d_inside = destination_shares
    groups = len(group_offsets) - 1
    found = np.zeros(groups + 1, np.int64)
    out_origin = np.empty(most, np.int32)
    out_destination = np.empty(most, np.int32)
    estimate = np.empty(most, np.float64)
    lower = np.empty(most, np.int64)
    upper = np.empty(most, np.int64)
    begin = np.zeros(o_zones + 1, np.int64)
    # The line is never emptied: an entry counts only while its stamp is the one of the current origin.
    stamp = np.full(d_zones, -1, np.int64)
    line = np.zeros(d_zones, np.float64)
    line_lower = np.zeros(d_zones, np.int64)
    line_upper = np.zeros(d_zones, np.int64)
    now = 0
    n = 0
    for group in range(groups):
        begin[:] = 0
        for row in range(group_offsets[group], group_offsets[group + 1]):
            for e in range(o_offsets[origin[row]], o_offsets[origin[row] + 1]):
                begin[o_zone[e] + 1] += 1
        for zone in range(o_zones):
            begin[zone + 1] += begin[zone]
        listed_row = np.empty(begin[o_zones], np.int64)
        listed_share = np.empty(begin[o_zones], np.int64)
        free = begin[:-1].copy()
        for row in range(group_offsets[group], group_offsets[group + 1]):
            for e in range(o_offsets[origin[row]], o_offsets[origin[row] + 1]):
                listed_row[free[o_zone[e]]] = row
                listed_share[free[o_zone[e]]] = e
                free[o_zone[e]] += 1
        for zone in range(o_zones):
            if begin[zone] == begin[zone + 1]:
                continue
            now += 1
            first, last = d_zones, -1
            for i in range(begin[zone], begin[zone + 1]):
                row, e = listed_row[i], listed_share[i]
                a, b, v = origin[row], destination[row], volume[row]
                cells = o_whole[a] * d_whole[b] * all_steps[row]
                whole = steps[row] == all_steps[row]
                for f in range(d_offsets[b], d_offsets[b + 1]):
                    d = d_zone[f]
                    if stamp[d] != now:
                        stamp[d] = now
                        line[d] = 0.0
                        line_lower[d] = 0
                        line_upper[d] = 0
                        first, last = min(first, d), max(last, d)
                    line[d] += v * (o_part[e] * d_part[f] * steps[row]) / cells
                    line_upper[d] += v
                    if whole and o_inside[e] and d_inside[f]:
                        line_lower[d] += v
            for d in range(first, last + 1):
                if stamp[d] == now:
                    out_origin[n] = zone
                    out_destination[n] = d
                    estimate[n] = line[d]
                    lower[n] = line_lower[d]
                    upper[n] = line_upper[d]
                    n += 1
        found[group + 1] = n
    return found, out_origin[:n], out_destination[:n], estimate[:n], lower[:n], upper[:n]
