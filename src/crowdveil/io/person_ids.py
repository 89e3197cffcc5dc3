"""Normalize ids of people, trajectories and zones, so that no person counts twice and no missing id counts as a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import MISSING
from crowdveil.io.values import one_array
from crowdveil.model.zones import Zones

_NUMBER = r"^[+-]?\d+(\.\d*)?$"
_ODD_NUMBER = r"^(\+|-?0\d|-0|-?\d+\.)"
"""Start of a number that has a shorter spelling; applied to numbers only."""
_SHORTER = (
    (r"^\+", ""),
    (r"(\.\d*?)0+$", r"\1"),
    (r"\.$", ""),
    (r"^(-?)0+(\d)", r"\1\2"),
    (r"^-0$", "0"),
)
"""Replacements in a number, in this order. Digits stay text, so that ids of any length are exact."""


def note_case_variants(alike: int, column: str | None, notes: ReadNotes) -> None:
    """Note how many ids differ from another one only in case."""
    if alike:
        notes.number(
            f"ids in column {column} that differ from another one only in case and count as different people", alike
        )


def id_type(kind: Any) -> Any:
    """Return the Arrow type of normalized ids for a column of type `kind`."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return value if pa.types.is_integer(value) else pa.string()


def normalized_ids(column: Any, what: str) -> Any:
    """Return a column of ids as an array: whole numbers unchanged, others as normalized text, null for missing.

    Surrounding white space is stripped, and equal decimal numbers are equal (1, 01, 1.0, +1). Text is compared in Unicode's
    NFC. Blank ids and words for a missing value are missing ids.
    """
    if pa.types.is_integer(id_type(column.type)):
        return one_array(column)
    if pa.types.is_dictionary(column.type) and isinstance(column, pa.Array):
        return normalized_ids(column.dictionary, what).take(column.indices)  # each value once, not each row
    array = one_array(column)
    if pa.types.is_floating(array.type):
        return _numbers_as_text(array)
    try:
        return _normalized(array.cast(pa.string()))
    except pa.ArrowException:
        raise InputError(
            what, f"Expected ids, but the column holds {array.type}. Give text or whole numbers."
        ) from None


def _composed(text: Any) -> Any:
    """Return text in NFC. Python composes it, once for each id: pyarrow before 26 decomposes instead."""
    known = text.dictionary_encode()
    composed = [normalize("NFC", value) for value in known.dictionary.to_pylist()]
    return pa.array(composed, pa.string()).take(known.indices)


def _normalized(text: Any) -> Any:
    if not pc.all(pc.string_is_ascii(text)).as_py():
        text = _composed(text)
    text = pc.utf8_trim_whitespace(text)
    missing = pc.is_in(text, pa.array(MISSING))
    if pc.any(missing).as_py():
        text = pc.if_else(missing, pa.scalar(None, pa.string()), text)
    may_be = pc.match_substring(text, ".")
    for sign in "+-0":
        may_be = pc.or_(may_be, pc.starts_with(text, sign))
    if not pc.any(may_be).as_py():
        return text
    # The costly patterns are applied only where the cheap ones match.
    rows = pc.indices_nonzero(pc.fill_null(may_be, False))
    some = text.take(rows)
    odd = pc.and_(pc.match_substring_regex(some, _ODD_NUMBER), pc.match_substring_regex(some, _NUMBER))
    if not pc.any(odd).as_py():
        return text
    mask = np.zeros(len(text), bool)
    mask[rows.filter(odd).to_numpy()] = True
    return pc.replace_with_mask(text, pa.array(mask), _shortest(some.filter(odd)))


def _shortest(numbers: Any) -> Any:
    """Return decimal numbers in their shortest spelling."""
    whole = pc.invert(pc.match_substring(numbers, "."))
    for pattern, replacement in _SHORTER:
        shorter = pc.replace_substring_regex(numbers, pattern=pattern, replacement=replacement)
        # Trailing zeros are removed only after a decimal point.
        numbers = pc.if_else(whole, numbers, shorter) if pattern.startswith(r"(\.") else shorter
    return numbers


def _numbers_as_text(array: Any) -> Any:
    """Return floats as text; 12.0, a whole number stored as float because of missing ids, becomes 12."""
    values = array.cast(pa.float64()).dictionary_encode()
    spelled = [
        None if v is None or v != v or v in (float("inf"), -float("inf")) else str(int(v)) if v == int(v) else repr(v)
        for v in values.dictionary.to_pylist()
    ]
    return pa.array(spelled, pa.string()).take(values.indices)


def count_case_variants(ids: Any) -> int:
    """Return how many distinct ids differ from another one only in case."""
    if isinstance(ids, np.ndarray):
        ids = pa.array(ids) if ids.dtype == object else pa.array([], pa.int64())
    if not pa.types.is_string(ids.type):
        return 0
    groups = pc.value_counts(pc.utf8_lower(ids)).field("counts")
    several = groups.filter(pc.greater(groups, 1))
    return int(pc.sum(several).as_py() or 0)


def refuse_other_spelling(unknown: Iterable[str], zones: Zones, what: str) -> None:
    """Raise if unknown ids differ from an id of the zones only in the spelling of a number, or in blanks."""
    present = [name for name in unknown if name]
    if not present:
        return
    known = set(normalized_ids(pa.array([str(i) for i in zones.ids], pa.string()), what).to_pylist()) - {None}
    if known.intersection(normalized_ids(pa.array(present, pa.string()), what).to_pylist()):
        raise InputError(
            what,
            "ids differ from those of the zones only in spelling (01 and 1 where leading zeros were lost, or 193.0 and 193) "
            "or in blanks; write them alike in both files.",
        )
