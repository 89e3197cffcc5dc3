"""Read Arrow columns of numbers, weights and ids as numpy arrays, with masks of missing rows.

Weights of trips are whole numbers of units, so that sums depend neither on the order of rows nor on threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError
from crowdveil.model.arrays import Floats, Ints, Labels, Mask
from crowdveil.model.flows import WEIGHT_UNITS

_WITH_COMMA = r"^\s*[+-]?\d*,\d+\s*$"
_DECIMAL = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$"
MAX_WEIGHT = 10**9
"""Largest weight of a trip."""
SUMS = pa.decimal128(38, 0)
"""Type of sums of weights; they cannot overflow."""


def one_array(column: Any) -> Any:
    """Return an Arrow column as one array, dictionaries decoded."""
    column = _combined(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _combined(column: Any) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def ids_of(column: Any, what: str) -> Any:
    """Return a column of ids as one array of whole numbers or text; other types become text or raise."""
    array = one_array(column)
    if pa.types.is_integer(array.type) or pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return array
    if pa.types.is_floating(array.type):
        return _whole_numbers(array)
    try:
        return array.cast(pa.string())
    except pa.ArrowException:
        raise InputError(
            what, f"Expected ids, but the column holds {array.type}. Give text or whole numbers."
        ) from None


def read_floats(column: Any, what: str) -> tuple[Floats, Mask | None]:
    """Return numbers, and the mask of rows without a finite one (None if there are none)."""
    array = one_array(column)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        array = _text_to_floats(array)
    elif not (pa.types.is_floating(array.type) or pa.types.is_integer(array.type) or pa.types.is_decimal(array.type)):
        raise InputError(what, f"Expected numbers, but the column holds {array.type}. Give a column of numbers.")
    values: Floats = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    # The sum is finite if all values are; only otherwise a mask is made.
    with np.errstate(all="ignore"):
        finite = np.isfinite(values.sum())
    if finite or bool(np.isfinite(values).all()):
        return values, None
    bad = ~np.isfinite(values)
    return np.where(bad, 0.0, values), bad


def _text_to_floats(array: Any) -> Any:
    try:
        return array.cast(pa.float64())
    except pa.ArrowInvalid:
        good = pc.match_substring_regex(array, _DECIMAL)
        text = pc.utf8_trim_whitespace(pc.if_else(good, array, None))
        return text.cast(pa.float64())


def decimal_commas(column: Any) -> Mask | None:
    """Return the rows of text that are a number with a decimal comma; None if there are none."""
    array = one_array(column)
    if not (pa.types.is_string(array.type) or pa.types.is_large_string(array.type)):
        return None
    found: Mask = pc.fill_null(pc.match_substring_regex(array, _WITH_COMMA), False).to_numpy(zero_copy_only=False)
    return found if found.any() else None


def comma_reason(column: str) -> str:
    """Return the reason why rows with a decimal comma are unusable."""
    return f"have a decimal comma in column {column}, where a decimal point is needed"


def encode_ids(column: Any, what: str = "the ids") -> tuple[Ints, Labels, Mask | None]:
    """Number distinct ids from 0 in order of appearance; return numbers by row, the ids, and rows without one.

    Dictionary-encoded text keeps its numbers; some ids may then be in no row.
    """
    numbered = pa.types.is_dictionary(column.type) and pa.types.is_string(column.type.value_type)
    encoded = _combined(column) if numbered else ids_of(column, what).dictionary_encode()
    missing: Mask | None = None
    indices = encoded.indices
    if indices.null_count:
        missing = indices.is_null().to_numpy(zero_copy_only=False)
        indices = indices.fill_null(0)
    return indices.to_numpy(zero_copy_only=False), _labels(encoded.dictionary), missing


def _whole_numbers(array: Any) -> Any:
    """Return ids stored as floats because of missing ones: whole numbers as integers, others as text."""
    values = array.to_numpy(zero_copy_only=False)
    present = values[np.isfinite(values)]
    if np.all(present == np.floor(present)) and (len(present) == 0 or np.abs(present).max() < 2**53):
        return pc.if_else(pc.is_finite(array), array, None).cast(pa.int64())
    return pc.if_else(pc.is_nan(array), None, array).cast(pa.string())


def _labels(array: Any) -> Labels:
    if pa.types.is_integer(array.type) and array.type != pa.uint64():
        labels: Labels = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return labels
    text = np.empty(len(array), dtype=object)
    text[:] = array.cast(pa.string()).to_pylist()
    return text


def natural_key(name: str) -> tuple[int, int, str]:
    """Return a sort key: numbers by size, before text."""
    return (0, int(name), name) if name.isdecimal() and len(name) < 19 else (1, 0, name)


def find_unusable_weights(weight: Floats) -> dict[str, Mask]:
    """Return which weights are unusable, by reason: "above …" or "above zero but below …"."""
    tiny = (weight > 0) & (np.rint(weight * WEIGHT_UNITS) == 0)
    return {
        f"above {MAX_WEIGHT:,}": weight > MAX_WEIGHT,
        f"above zero but below {1 / WEIGHT_UNITS:.9f}": tiny,
    }


def to_weight_units(weight: Floats) -> Ints:
    """Return weights as whole numbers of units; unusable ones are 0."""
    usable = np.where((weight >= 0) & (weight <= MAX_WEIGHT), weight, 0.0)
    units: Ints = np.rint(usable * WEIGHT_UNITS).astype(np.int64)
    return units


def read_weight_sums(column: Any, name: str) -> Ints:
    """Return sums of weights from a column of DuckDB, in units."""
    try:
        units: Ints = column.cast(SUMS).cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        raise InputError(
            name, f"the weights of a flow add up to more than {2**63 // WEIGHT_UNITS:,} trips. Check their column."
        ) from None
    return units
