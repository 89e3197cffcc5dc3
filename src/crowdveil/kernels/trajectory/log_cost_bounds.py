"""Bounds of what matches of two sequences of boxes save, from above: see `log_cost`.

By the whole: two sequences summarized as one, and as many matches as the shorter has boxes. By chunks: each box of the
shorter one with a run of boxes of the longer one. By rough logs: all matches, each with a log that is off by at most `ROUGH`,
which takes a tenth of the time. Where it is known how much others save, matches that lead to less are passed over: what the
boxes behind them can save is bounded by finer chunks.
"""

from __future__ import annotations

import numpy as np

from crowdveil.kernels._jit import bits_of, float_of, kernel
from crowdveil.kernels._types import Floats, Ints

Costs = tuple[float, float, float]

CHUNKS = 12
"""Runs of boxes that a sequence is summarized by, at most."""
FINE = 8
"""Boxes of a finer chunk."""
ROUGH = 2e-6
"""Rough logs are off by less."""
SURE, SURE_COST = 1 + 1e-12, 1e-9
"""Bounds are taken this much wider than they are, so that rounding never makes them narrower."""


@kernel
def rough_log(value: float) -> float:
    """Return the natural logarithm of a value from 1 on: that of its power of two, and a polynomial in what is left.

    Without a branch or a table, so that the compiler can take several at once.
    """
    bits = bits_of(value)
    # The exponent as the last digits of a float of 2 ** 52: there is no such instruction for whole numbers of 64 bits.
    power = float_of((bits >> 52) | 0x4330000000000000) - 4503599627371519.0
    u = float_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000) - 1.5
    rest = 0.030434345850230287 + u * -0.017029610590701707
    rest = 0.09823610103356478 + u * (-0.04907264388788263 + u * rest)
    rest = 0.666683390401443 + u * (-0.2222320215971876 + u * rest)
    found: float = 0.6931471805599453 * power + (0.4054651081081649 + u * rest)
    return found


@kernel
def _saved(x: float, y: float, t: float, costs: Costs) -> float:
    """Return about what a match saves whose box has these lengths.

    Two logs even where their weights are equal: a branch would keep the compiler from taking several at once.
    """
    s, of_space, of_time = costs
    return 2.0 * s - (of_space * rough_log((1.0 + x) * (1.0 + y)) + of_time * rough_log(1.0 + t))


@kernel
def surely(most: float, matches: int, costs: Costs) -> float:
    """Return a bound by rough logs, widened by all that they can be off."""
    return most * SURE + SURE_COST + matches * (costs[1] + costs[2]) * ROUGH


@kernel
def summarize(boxes: Floats, low: int, high: int, chunks: Floats, begin: int, count: int) -> None:
    """Summarize boxes low to high, as columns of `chunks`: for x, y and t the greatest least value, the least greatest one, and
    the least length.
    """
    for c in range(count):
        first, last = low + (high - low) * c // count, low + (high - low) * (c + 1) // count
        for axis in range(3):
            greatest_least, least_greatest, least_length = -np.inf, np.inf, np.inf
            for i in range(first, last):
                least, greatest = boxes[2 * axis, i], boxes[2 * axis + 1, i]
                greatest_least = max(greatest_least, least)
                least_greatest = min(least_greatest, greatest)
                least_length = min(least_length, greatest - least)
            chunks[3 * axis, begin + c] = greatest_least
            chunks[3 * axis + 1, begin + c] = least_greatest
            chunks[3 * axis + 2, begin + c] = least_length


@kernel
def summarize_all(boxes: Floats, offsets: Ints, chunks: Floats, whole: Floats) -> None:
    """Summarize each sequence: its chunks from CHUNKS times its number on, and all of it as one."""
    for j in range(len(offsets) - 1):
        low, high = offsets[j], offsets[j + 1]
        summarize(boxes, low, high, chunks, CHUNKS * j, min(CHUNKS, high - low))
        if high > low:
            summarize(boxes, low, high, whole, j, 1)


@kernel
def bound_by_whole(a: Floats, b: Floats, j: int, matches: int, costs: Costs) -> float:
    """Return the bound by the whole: column 0 of a and column j of b summarize two sequences."""
    if matches == 0:
        return 0.0
    x = max(max(a[1, 0] - b[0, j], b[1, j] - a[0, 0]), max(a[2, 0], b[2, j]))
    y = max(max(a[4, 0] - b[3, j], b[4, j] - a[3, 0]), max(a[5, 0], b[5, j]))
    t = max(max(a[7, 0] - b[6, j], b[7, j] - a[6, 0]), max(a[8, 0], b[8, j]))
    return surely(matches * max(_saved(x, y, t, costs), 0.0), matches, costs)


@kernel
def _length(least: float, greatest: float, greatest_least: float, least_greatest: float, least_length: float) -> float:
    """Return a length that no box around a box and one of a chunk is shorter than."""
    return max(max(greatest - greatest_least, least_greatest - least), max(greatest - least, least_length))


@kernel
def bound_by_chunks(
    rows: Floats, low: int, high: int, chunks: Floats, begin: int, count: int, costs: Costs, row: Floats
) -> float:
    """Return the bound by chunks: each box of the rows is matched with anything of a chunk, in the order of chunks.

    Rows are the shorter sequence; `row` is a buffer with an entry for each of its boxes.
    """
    west, east = rows[0, low:high], rows[1, low:high]
    south, north = rows[2, low:high], rows[3, low:high]
    early, late = rows[4, low:high], rows[5, low:high]
    # best[i]: what the boxes before i save with the chunks so far.
    best = np.zeros(high - low + 1)
    for c in range(begin, begin + count):
        x_1, x_2, x_3 = chunks[0, c], chunks[1, c], chunks[2, c]
        y_1, y_2, y_3 = chunks[3, c], chunks[4, c], chunks[5, c]
        t_1, t_2, t_3 = chunks[6, c], chunks[7, c], chunks[8, c]
        for i in range(high - low):
            row[i] = _saved(
                _length(west[i], east[i], x_1, x_2, x_3),
                _length(south[i], north[i], y_1, y_2, y_3),
                _length(early[i], late[i], t_1, t_2, t_3),
                costs,
            )
        most = 0.0
        for i in range(high - low):
            # The next box goes with this chunk, after boxes that went with this one or an earlier one.
            most = max(most + max(row[i], 0.0), best[i + 1])
            best[i + 1] = most
    return surely(best[high - low], high - low, costs)


@kernel
def slack(matches: int, costs: Costs) -> float:
    """Return more than what sums of so many rough logs can be off."""
    return 2 * (SURE_COST + matches * ((costs[1] + costs[2]) * ROUGH + 2 * costs[0] * (SURE - 1)))


@kernel
def evenly_saved(rows: Floats, low: int, high: int, columns: Floats, begin: int, end: int, costs: Costs) -> float:
    """Return about what the matches save that are spread evenly over both sequences. Rows are the shorter one."""
    p, q, total = high - low, end - begin, 0.0
    for i in range(p):
        r, c = low + i, begin + i * (q - 1) // max(p - 1, 1)
        x = max(rows[1, r], columns[1, c]) - min(rows[0, r], columns[0, c])
        y = max(rows[3, r], columns[3, c]) - min(rows[2, r], columns[2, c])
        t = max(rows[5, r], columns[5, c]) - min(rows[4, r], columns[4, c])
        total += max(_saved(x, y, t, costs), 0.0)
    return total


@kernel
def suffix_bounds(
    rows: Floats, low: int, high: int, chunks: Floats, count: int, costs: Costs, table: Floats, row: Floats
) -> float:
    """Write about what boxes from `low` + i on can save with chunks from c on at most, as table[c, i]; return that of all."""
    west, east = rows[0, low:high], rows[1, low:high]
    south, north = rows[2, low:high], rows[3, low:high]
    early, late = rows[4, low:high], rows[5, low:high]
    p = high - low
    table[count] = 0.0
    for c in range(count - 1, -1, -1):
        x_1, x_2, x_3 = chunks[0, c], chunks[1, c], chunks[2, c]
        y_1, y_2, y_3 = chunks[3, c], chunks[4, c], chunks[5, c]
        t_1, t_2, t_3 = chunks[6, c], chunks[7, c], chunks[8, c]
        for i in range(p):
            row[i] = _saved(
                _length(west[i], east[i], x_1, x_2, x_3),
                _length(south[i], north[i], y_1, y_2, y_3),
                _length(early[i], late[i], t_1, t_2, t_3),
                costs,
            )
        now, later, most = table[c], table[c + 1], 0.0
        now[p] = 0.0
        for i in range(p - 1, -1, -1):
            most = max(most + max(row[i], 0.0), later[i])
            now[i] = most
    return float(table[0, 0])


@kernel
def bound_by_rough_logs(
    rows: Floats, low: int, high: int, columns: Floats, begin: int, end: int, costs: Costs, line: Floats, row: Floats,
    table: Floats, enough: float,
) -> float:  # fmt: skip
    """Return the bound by rough logs, as `best_saving`, or `enough` where no matches save more; `line` and `row` are buffers.

    `table` is from `suffix_bounds`. Chunks of columns are left behind when all that leads over them is sure to save less than
    `enough`, and are not looked at before anything that leads to them can save that. What is left of them are sums over fewer
    matches, which are not above those that are due.
    """
    west, east = columns[0, begin:end], columns[1, begin:end]
    south, north = columns[2, begin:end], columns[3, begin:end]
    early, late = columns[4, begin:end], columns[5, begin:end]
    q, count, off = end - begin, len(table) - 1, slack(high - low, costs)
    for j in range(q):
        line[j] = 0.0
    first, best = 0, 0.0
    for i in range(low, high):
        x_1, x_2, y_1, y_2, t_1, t_2 = rows[0, i], rows[1, i], rows[2, i], rows[3, i], rows[4, i], rows[5, i]
        rest, last = i - low + 1, first
        while last < count and best + 2.0 * costs[0] + table[last, rest] + off >= enough:
            last += 1
        if last == first:
            return enough
        left, right = q * first // count, q * last // count
        # Apart from the sums, so that the compiler can take several at once.
        for j in range(left, right):
            row[j] = _saved(
                max(x_2, east[j]) - min(x_1, west[j]),
                max(y_2, north[j]) - min(y_1, south[j]),
                max(t_2, late[j]) - min(t_1, early[j]),
                costs,
            )
        before = line[left - 1] if left > 0 else 0.0
        diagonal = before
        for j in range(left, right):
            above = line[j]
            before = max(max(diagonal + row[j], above), before)
            diagonal = above
            line[j] = before
        best = max(best, before)
        while first < last and line[q * (first + 1) // count - 1] + table[first, rest] + off < enough:
            first += 1
    return max(surely(best, high - low, costs), enough)
