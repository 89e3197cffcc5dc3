"""Number the points of two tables, equal ones alike: for checkers, with numpy alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from crowdveil.model.arrays import Bytes, Floats, Indices, Ints, Mask, index_type

Columns = tuple[Ints, Floats, Floats]
"""Time, latitude and longitude of each point."""
PART_ROWS, MAX_PARTS = 1 << 16, 256
"""Points that are numbered in one go, so that they are in the cache; and into how many parts points are divided at most."""
SPAN_BITS, SAMPLE = 18, 100_000
"""Spans of time that parts are made of, as a power of two; and points of a sample that shows how many lie in each."""
MAX_ROW_BITS = 20
"""Bits of a hash that the number of a row may take the place of: few different rows share the others then."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def number_points(first: Columns, second: Columns) -> tuple[Indices | Ints, Indices | Ints]:
    """Return a number for each point of two tables, equal for points of one location and time.

    Points of one interval of time after the other are numbered: equal ones are in one, and copies of columns are short.
    """
    sides = (first, second)
    kind = index_type(len(first[0]) + len(second[0]))
    numbers, count = tuple(np.empty(len(t), kind) for t, _, _ in sides), 0
    intervals = _Intervals(second[0], (len(first[0]) + len(second[0])) // PART_ROWS)
    for rows in zip(*(intervals.rows(t) for t, _, _ in sides), strict=True):
        # The values of these rows of a column of both tables, one after the other.
        columns = [
            np.concatenate([values.take(r) for values, r in zip(pair, rows, strict=True)])
            for pair in zip(*sides, strict=True)
        ]
        number, distinct = _number_rows(columns)
        for of, r, found in zip(numbers, rows, np.split(number, [len(rows[0])]), strict=True):
            of[r] = found + count
        count += distinct
    return numbers[0], numbers[1]


class _Intervals:
    """Intervals of time with about as many points each: times are divided into short spans, and spans belong to an interval."""

    def __init__(self, t: Ints, parts: int) -> None:
        self.start = int(t.min(initial=0))
        self.shift = max((int(t.max(initial=0)) - self.start).bit_length() - SPAN_BITS, 0)
        sample = self._spans(t[:: max(len(t) // SAMPLE, 1)])
        before = np.cumsum(np.bincount(sample, minlength=1))
        parts = min(max(parts, 1), MAX_PARTS)
        self.part: Bytes = ((before - 1).clip(0) * parts // max(len(sample), 1)).astype(np.uint8)

    def _spans(self, t: Ints) -> Ints:
        spans: Ints = (t - self.start) >> self.shift
        return spans

    def rows(self, t: Ints) -> Iterator[Ints]:
        """Yield the rows of some times that lie in each interval, rising; times before and after all are in the outermost."""
        part = np.empty(len(t), np.uint8)
        for low in range(0, len(t), PART_ROWS):
            chunk = slice(low, low + PART_ROWS)
            part[chunk] = self.part[self._spans(t[chunk]).clip(0, len(self.part) - 1)]
        # Points of a trajectory follow one another, and most lie in one interval: runs of rows are sorted, not rows.
        begins = np.flatnonzero(np.append(True, part[1:] != part[:-1])[: len(part)])
        lengths, of = np.diff(begins, append=len(part)), part[begins]
        order = np.argsort(of, kind="stable")
        begins, lengths = begins[order], lengths[order]
        ends = np.append(0, np.cumsum(np.bincount(of, minlength=int(self.part[-1]) + 1)))
        del part, of, order
        for i in range(len(ends) - 1):
            runs = slice(ends[i], ends[i + 1])
            new = np.append(0, np.cumsum(lengths[runs]))
            yield np.repeat(begins[runs] - new[:-1], lengths[runs]) + np.arange(new[-1])


def _number_rows(columns: list[Any]) -> tuple[Ints, int]:
    """Number the rows of some columns, equal ones alike, and return how many different ones there are.

    They are sorted by a hash. Should two different rows have the same, they are sorted by all columns instead.
    """
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashed ^= (column + 0.0 if column.dtype == np.float64 else column).view(np.uint64)  # -0.0 is 0.0
        hashed *= _FACTOR
        hashed ^= hashed >> np.uint64(32)
    order, same_hash = _sort_hashes(hashed)
    differ = _differences(columns, order)
    if np.any(same_hash & differ):
        order = np.lexsort(columns)
        differ = _differences(columns, order)
    number = np.zeros(len(order), np.int64)
    number[order[1:]] = np.cumsum(differ)
    return number, int(differ.sum()) + min(len(order), 1)


def _sort_hashes(hashed: Any) -> tuple[Ints, Mask]:
    """Return an order of hashes, and whether each has the one before it.

    Of few rows the highest bits are enough, and the row takes the place of the others: sorting numbers takes a fraction of the
    time of sorting places.
    """
    bits = len(hashed).bit_length()
    if bits > MAX_ROW_BITS:
        order = np.argsort(hashed)
        return order, np.diff(hashed[order]) == 0
    shift = np.uint64(bits)
    keys = (hashed >> shift << shift) | np.arange(len(hashed), dtype=np.uint64)
    keys.sort()
    rows = (keys & np.uint64((1 << bits) - 1)).astype(np.int64)
    keys >>= shift
    return rows, keys[1:] == keys[:-1]


def _differences(columns: list[Any], order: Ints) -> Mask:
    """Return whether each row, in an order, differs from the one before it."""
    differ = np.zeros(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        values = column.take(order, mode="clip")
        differ |= values[1:] != values[:-1]
    return differ
