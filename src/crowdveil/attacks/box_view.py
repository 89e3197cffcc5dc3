"""Search published boxes: a known location, and its time, matches every box that meets its tile.

Boxes contain the original points, so that the boxes of a person are always among the matches, and with them those of the whole
equivalence class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.errors import InputError, Option
from crowdveil.model.arrays import Ints, slice_sums

MAX_RECORDS = 20_000_000
"""Pairs of a box and a tile that a search takes: more are refused, since they take minutes and gigabytes."""
SEARCH_BOXES = ("location", "sequence", "time", "unique-location")
"""Attacks that search boxes; the others count visits, which boxes do not show."""


class TooManyTilesError(InputError):
    """Boxes meet too many tiles to search all of them."""


class Axis(NamedTuple):
    """Rows or columns of tiles, or times at some precision: of original points, and the least and greatest of each box."""

    of_data: Ints
    low: Ints
    high: Ints


def box_records(axes: tuple[Axis, Axis, Axis], offsets: Ints, known: int) -> tuple[Ints, Ints, Ints]:
    """Return the locations of original points, and those that boxes meet with their offsets by trajectory; those of each box
    `known` times, since one box may have all known ones.

    Locations are numbered by row, column and time, and only those that the original has are listed.
    """
    (of_row, *_), (of_column, *_), (of_time, *_) = axes
    rows, row = np.unique(of_row, return_inverse=True)
    wide, long = (int(values.max(initial=0)) + 1 for values in (of_column, of_time))
    tiles, tile = np.unique(row * wide + of_column, return_inverse=True)
    symbols, of_data = np.unique(tile * long + of_time, return_inverse=True)
    low, high = [axis.low for axis in axes], [axis.high for axis in axes]
    box, at = _ranges(np.searchsorted(rows, low[0]), np.searchsorted(rows, high[0], side="right"))
    first = np.searchsorted(tiles, at * wide + np.clip(low[1][box], 0, wide))
    last = np.searchsorted(tiles, at * wide + np.clip(high[1][box], -1, wide - 1), side="right")
    _check_size(int(np.maximum(last - first, 0).sum()) * known)
    of, at = _ranges(first, last)
    box = box[of]
    first = np.searchsorted(symbols, at * long + np.clip(low[2][box], 0, long))
    last = np.searchsorted(symbols, at * long + np.clip(high[2][box], -1, long - 1), side="right")
    _check_size(int(np.maximum(last - first, 0).sum()) * known)
    of, symbol = _ranges(first, last)
    count = np.bincount(box[of], minlength=len(low[0]))
    ends = np.cumsum(count)
    again = np.repeat(ends - count, known)
    _, place = _ranges(again, again + np.repeat(count, known))
    lengths = slice_sums(offsets, count * known)
    return of_data, symbol[place], np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])


def _ranges(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the numbers from each low to below its high, one after the other, and the row that each comes from."""
    count = np.maximum(high - low, 0)
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count) + low[row]


def _check_size(records: int) -> None:
    if records > MAX_RECORDS:
        raise TooManyTilesError(
            Option("tile_m"),
            "the boxes of the release meet too many tiles to search all of them; give larger tiles of known locations.",
        )
