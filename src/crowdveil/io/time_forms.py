"""Forms of times in a column: a format, or the unit of numbers since 1970."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.time_axis import DAY_S

TICKS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units of numbers since 1970; also values of --time-format."""
EXCEL = "excel"
_UP_TO = {"seconds": 1e11, "milliseconds": 1e14, "microseconds": 1e17, "nanoseconds": np.inf}
"""Seconds of the present have ten digits, milliseconds thirteen, microseconds sixteen, nanoseconds nineteen."""
_DATES = ((19_000_101, 22_000_101), (190_001_010_000, 220_001_010_000), (19_000_101_000_000, 22_000_101_000_000))
"""Bounds of dates that are written as one number: yyyymmdd, yyyymmddHHMM, yyyymmddHHMMSS."""
_EXCEL_DAYS = (25_569, 73_416)
"""Day numbers of a spreadsheet from 1970 up to the year 2100."""
_EXCEL_SPREAD_DAYS = 36_525
YEAR_FIRST = (
    r"^\s*(?P<Y>\d{4})[-/.](?P<M>\d{1,2})[-/.](?P<D>\d{1,2})"
    r"(?:(?:T|\s+)(?P<h>\d{1,2})(?::(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?)?)?"
    r"\s*(?P<z>Z|z|UTC|[+-]\d{2}:?\d{2})?\s*$"
)
NUMBER = r"^\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class TimeForm:
    """Form of times, as far as it is known before they are read.

    Attributes
    ----------
    given
        A strptime format or a unit of numbers, as given by the user.
    unit
        Unit of numbers that was found in the column; a key of `TICKS`.
    """

    given: str | None = None
    unit: str | None = None

    def __post_init__(self) -> None:
        """Refuse a format in another notation, such as YYYY-MM-DD."""
        if self.given is not None and self.given_unit is None and "%" not in self.given:
            raise ParameterError(
                Option("time_format"),
                f"Expected signs of strptime such as %d/%m/%Y %H:%M, or one of {', '.join((*TICKS, EXCEL))}, got {self.given}. "
                "Write %Y for the year, %m the month, %d the day, %H the hour, %M the minute.",
            )

    @property
    def given_unit(self) -> str | None:
        """The unit of numbers that the user gave in place of a format."""
        return self.given if self.given in (*TICKS, EXCEL) else None

    @property
    def given_format(self) -> str | None:
        """The strptime format that the user gave."""
        return self.given if self.given_unit is None else None


def learned_form(chunks: Iterable[Any], form: TimeForm, what: str) -> TimeForm:
    """Return the form with the unit of numbers, found in the first chunk of a column that has values."""
    if form.given is not None:
        return form
    for chunk in chunks:
        if not is_text(chunk.type) and not is_number(chunk.type):
            break
        present = one_array(chunk).drop_null()
        if len(present):
            numbers = is_number(chunk.type) or all_numbers(present)
            return replace(form, unit=unit_of(to_numbers(present), what)) if numbers else form
    return form


def is_text(kind: Any) -> bool:
    """Return whether a column of this Arrow type holds text, plain or dictionary-encoded."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value))


def is_number(kind: Any) -> bool:
    """Return whether a column of this Arrow type holds numbers."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_integer(value) or pa.types.is_floating(value))


def all_numbers(text: Any) -> bool:
    """Return whether all non-null values of a text array are numbers."""
    return bool(pc.all(pc.match_substring_regex(text, NUMBER)).as_py())


def to_numbers(array: Any) -> Any:
    """Return an array of numbers or text as numbers; other text becomes null."""
    if not is_text(array.type):
        return array
    good = pc.match_substring_regex(array, NUMBER)
    text = pc.utf8_trim_whitespace(pc.if_else(good, array, pa.scalar(None, array.type)))
    try:
        return text.cast(pa.int64())  # exact: nanoseconds have too many digits for a float
    except pa.ArrowInvalid:
        return text.cast(pa.float64())


def unit_of(array: Any, what: str) -> str:
    """Return the unit of numbers since 1970 by their size; raise if they may be dates or days of a spreadsheet."""
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    values = values[np.abs(values) < 2**63]
    if len(values) == 0:
        return "seconds"
    usual = float(np.median(np.abs(values)))
    if any(low <= usual < high for low, high in _DATES) and bool(np.all(values == np.floor(values))):
        raise InputError(
            what,
            Text(
                "the numbers could be dates such as 20240131 or times since 1970. Give {time_format}, such as %Y%m%d, or "
                "seconds."
            ),
        )
    low, high = float(values.min()), float(values.max())
    if _EXCEL_DAYS[0] <= low and high < _EXCEL_DAYS[1] and high - low <= _EXCEL_SPREAD_DAYS:
        raise InputError(
            what,
            Text(
                "the numbers could be days of a spreadsheet or seconds. Give {time_format}, or {seconds}.",
                time_format=Option("time_format", "excel"),
                seconds=Option("time_format", "seconds"),
            ),
        )
    refuse_mixed(values, what)
    return _unit_by_size(usual)


def _unit_by_size(value: float) -> str:
    return next(unit for unit, above in _UP_TO.items() if value < above)


def refuse_mixed(values: Floats, what: str, unit: str | None = None) -> None:
    """Raise unless all numbers have the size of one unit, and of `unit` if it is given."""
    if len(values) == 0:
        return
    sizes = np.abs(values)
    low, high = _unit_by_size(float(sizes.min())), _unit_by_size(float(sizes.max()))
    if low != high or unit not in (None, low):
        others = [name for name in TICKS if name in (low, high, unit)]
        raise InputError(
            what,
            Text(
                "some numbers have the size of {one} and some of {other} since 1970. Write all of them in one "
                "unit, or name it with {time_format}.",
                one=others[0],
                other=others[-1],
            ),
        )


def from_excel(days: Floats) -> tuple[Ints, Mask]:
    """Return local seconds (rounded) from day numbers of a spreadsheet, and which are invalid."""
    bad = ~((days >= 0) & (days < 2_958_466))
    seconds = np.rint((np.where(bad, _EXCEL_DAYS[0], days) - _EXCEL_DAYS[0]) * DAY_S)
    return seconds.astype(np.int64), bad


def seconds_of(year: Ints, month: Ints, day: Ints, hour: Ints, minute: Ints, second: Ints) -> tuple[Ints, Mask]:
    """Return local seconds from calendar fields, and which are invalid."""
    bad: Mask = (year < 1) | (year > 9999) | (month < 1) | (month > 12)
    bad |= (hour > 23) | (minute > 59) | (second > 59)
    months = (np.where(bad, 1970, year) - 1970) * 12 + np.where(bad, 1, month) - 1
    first_day = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    bad |= (day < 1) | (day > next_first - first_day)
    return (first_day + day - 1) * DAY_S + hour * 3600 + minute * 60 + second, bad
