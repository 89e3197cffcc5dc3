"""Define the array types of all models, and the checks of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from crowdveil.errors import InputError, Text
from crowdveil.kernels._types import AnyArray, Bytes, Floats, Indices, Ints, Mask, Small, Words

Labels = AnyArray
_T = TypeVar("_T")
CHUNK = 1 << 16
"""Places that are looked up at once."""

__all__ = ["AnyArray", "Bytes", "Floats", "Indices", "Ints", "Mask", "Small", "Words"]
"""Types that models import from here."""


def frozen(values: npt.ArrayLike, dtype: npt.DTypeLike) -> AnyArray:
    """Return `values` as a contiguous read-only array of `dtype`; copy only where necessary."""
    array = np.ascontiguousarray(values, dtype=dtype)
    if array is values and array.flags.writeable:
        array = array.view()
    array.flags.writeable = False
    return array


_TYPES = {"Ints": np.int64, "Indices": np.int32, "Floats": np.float64, "Mask": np.bool_, "Bytes": np.uint8}
"""The type of a column by the name of its annotation."""


def freeze_columns(model: Any) -> None:
    """Make the columns of a model read-only arrays of the types that it declares; a column may be None where it says so."""
    for name, dtype in _column_types(model.__class__):
        values = getattr(model, name)
        if values is not None:
            object.__setattr__(model, name, frozen(values, dtype))


@cache
def _column_types(model: type) -> list[tuple[str, npt.DTypeLike]]:
    declared = ((column.name, str(column.type).removesuffix(" | None")) for column in fields(model))
    return [(name, _TYPES[kind]) for name, kind in declared if kind in _TYPES]


def index_type(below: int) -> npt.DTypeLike:
    """Return the type of numbers from -1 to `below` - 1: 32 bits where that is enough, since columns of points are long."""
    return np.int32 if below <= 2**31 else np.int64


def refreeze(value: _T) -> _T:
    """Return a value that comes from another process with all arrays in it made read-only again, however deep they are."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, tuple | list):
        for item in value:
            refreeze(item)
    elif isinstance(value, dict):
        refreeze([*value.values()])
    elif hasattr(value, "__dict__"):
        refreeze([*vars(value).values()])
    return value


class Sent:
    """Base of objects that are sent to other processes: pickling makes arrays writable; this makes them read-only again."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(refreeze(state))


def require(condition: bool | np.bool_, message: str | Text) -> None:
    """Raise `InputError(message)` unless `condition` holds."""
    if not condition:
        raise InputError(message)


def check_offsets(offsets: Ints, n: int, what: str) -> None:
    """Check that `offsets` cut `n` rows into consecutive, possibly empty, slices."""
    require(offsets.ndim == 1 and len(offsets) >= 1, f"{what}: expected a one-dimensional list of offsets.")
    require(
        offsets[0] == 0 and offsets[-1] == n and bool(np.all(np.diff(offsets) >= 0)),
        f"{what}: offsets must rise from 0 to the number of rows, {n:,}.",
    )


def check_lengths(what: str, n: int, **columns: AnyArray | None) -> None:
    """Check that every column has `n` rows, except those that are None."""
    for name, column in columns.items():
        if column is None:
            continue
        require(
            column.ndim == 1 and len(column) == n,
            f"{what}: column {name} has {len(column):,} rows instead of {n:,}.",
        )


def check_coordinates(what: str, lon: Floats, lat: Floats) -> None:
    """Check that longitudes and latitudes are finite and on the globe."""
    for name, values, bound in (("lon", lon, 180.0), ("lat", lat, 90.0)):
        # A comparison with NaN is false, and the minimum of values with a NaN is NaN: two numbers decide for all.
        if len(values) == 0 or (values.min() >= -bound and values.max() <= bound):
            continue
        bad = ~(np.abs(values) <= bound)
        require(
            not bad.any(),
            f"{what}: column {name} has {int(bad.sum()):,} values that are not degrees of {name}.",
        )


def groups_of(work: Ints, about: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive groups of items that have about so much work together, or one item that has more."""
    begun = np.flatnonzero(np.diff((np.cumsum(work) - work) // about, prepend=-1))
    return pairwise([*begun.tolist(), len(work)])


def gather(values: AnyArray, places: Indices | Ints) -> AnyArray:
    """Return values[places] for places of 32 bits, none negative, in a third of the time of numpy's indexing."""
    found: AnyArray = np.empty(len(places), values.dtype)
    for low in range(0, len(places), CHUNK):
        # Clipping changes nothing, but numpy writes to `found` at once.
        values.take(places[low : low + CHUNK], out=found[low : low + CHUNK], mode="clip")
    return found


def scatter(target: AnyArray, places: Indices | Ints, values: AnyArray) -> None:
    """Write target[places] = values for places of 32 bits, in less time than numpy's indexing."""
    for low in range(0, len(places), CHUNK):
        target[places[low : low + CHUNK].astype(np.intp)] = values[low : low + CHUNK]


def row_slices(offsets: Ints) -> Ints:
    """Return the slice of each row: offsets (0, 2, 3) give (0, 0, 1)."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def distinct(values: AnyArray, below: int) -> tuple[Ints, Ints]:
    """Return the distinct whole numbers from 0 to `below` - 1 in `values`, rising, and the rank of each value among them."""
    values = values.astype(np.intp, copy=False)  # numpy takes much longer to convert them while it looks them up
    present = np.zeros(below, np.bool_)
    present[values] = True
    return np.flatnonzero(present), gather(np.cumsum(present) - 1, values)


def ranks(values: AnyArray) -> tuple[Ints, int]:
    """Return the rank of each value among the distinct values, and their number."""
    if len(values) and np.issubdtype(values.dtype, np.integer):
        low, high = int(values.min()), int(values.max())
        if high - low < 4 * len(values) + 65_536:  # few numbers in between: count instead of sorting
            used, rank = distinct(values - low, high - low + 1)
            return rank, len(used)
    different, rank = np.unique(values, return_inverse=True)
    return rank.reshape(-1).astype(np.int64), max(len(different), 1)


def sorted_distinct(values: Ints, *, in_runs: bool = False) -> Ints:
    """Return the different values, rising. Sorting takes a tenth of the time of numpy's hash table, which `np.unique` uses.

    `in_runs`: they are in a few runs, each of them rising, which are merged.
    """
    rising = np.sort(values, kind="stable" if in_runs else None) if (values[1:] < values[:-1]).any() else values
    first: Mask = np.append(True, rising[1:] != rising[:-1])[: len(rising)]
    found: Ints = rising[first]
    return found


def count_distinct(values: Ints) -> int:
    """Return how many different values there are; by marks where they are of a dense range, which takes the least time."""
    if len(values) and values.min() >= 0 and (below := int(values.max()) + 1) <= 64 * len(values):
        present = np.zeros(below, np.bool_)
        present[values] = True
        return int(np.count_nonzero(present))
    return len(sorted_distinct(values))


def slice_sums(offsets: Ints, values: Ints) -> Ints:
    """Return the sum of the values of each slice."""
    sums = np.zeros(len(offsets) - 1, np.int64)
    some = np.flatnonzero(offsets[1:] > offsets[:-1])
    if len(some):  # each sum ends where the next slice with values begins
        sums[some] = np.add.reduceat(values[: offsets[-1]], offsets[some], dtype=np.int64)
    return sums


def group_sums(group: AnyArray, values: AnyArray | int, groups: int) -> Ints:
    """Add up values by group, exactly: a count by numpy would add them as floats."""
    sums = np.zeros(groups, np.int64)
    np.add.at(sums, group, values)
    return sums


def group_offsets(group: AnyArray, groups: int) -> Ints:
    """Return where each group begins once rows are sorted by group."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(group, minlength=groups))])


def number_rows(*columns: AnyArray) -> Ints:
    """Number rows from 0, equal ones alike."""
    order = np.lexsort(columns)
    differs = np.zeros(len(order), np.bool_)
    for column in columns:
        values = column[order]
        differs[1:] |= values[1:] != values[:-1]
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(differs)
    return number


def take_slices(offsets: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Return the rows of slices in another order, one after the other, and their new offsets."""
    lengths = np.diff(offsets)[order]
    new = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    rows = np.arange(new[-1]) + np.repeat(offsets[:-1][order] - new[:-1], lengths)
    return rows, new
