"""Forms of times in a column: the unit of numbers, and whether dates begin with the day or the month."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Floats, Ints, Mask

TICKS = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
"""Units of numbers since 1970; also values of --time-format."""
EXCEL = "excel"
_UP_TO = {"seconds": 1e11, "milliseconds": 1e14, "microseconds": 1e17, "nanoseconds": np.inf}
"""Seconds of the present have ten digits, milliseconds thirteen, microseconds sixteen, nanoseconds nineteen."""
_DIGITS = {"yyyymmdd": (0, 10**8), "yyyymmddHHMM": (2, 10**12), "yyyymmddHHMMSS": (3, 10**14)}
"""Calendar fields written as one number: the number of clock fields after the date, and the upper bound of numbers."""
_EXCEL_DAYS = (25_569, 73_416)
"""Day numbers of a spreadsheet from 1970 up to the year 2100."""
_EXCEL_SPREAD_DAYS = 36_525
_CLOCK = (
    r"(?P<h>\d{1,2})(?::(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?)?"
    r"\s*(?P<p>[AaPp]\.?[Mm]\.?)?"
)
_ZONE = r"\s*(?P<z>Z|z|UTC|[+-]\d{2}:?\d{2})?\s*$"
YEAR_FIRST = rf"^\s*(?P<Y>\d{{4}})[-/.](?P<M>\d{{1,2}})[-/.](?P<D>\d{{1,2}})(?:(?:T|\s+){_CLOCK})?{_ZONE}"
YEAR_LAST = rf"^\s*(?P<M>\d{{1,2}})[-/.](?P<D>\d{{1,2}})[-/.](?P<Y>\d{{4}})(?:(?:T|,?\s+){_CLOCK})?{_ZONE}"
"""A date with the month first; with the day first, the two fields are exchanged."""
NUMBER = r"^\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class TimeForm:
    """Form of times, as far as it is known before they are read.

    Attributes
    ----------
    given
        A strptime format or a unit of numbers, as given by the user.
    any_years
        Whether times before 1970, after 2100, or more than 100 years apart are allowed.
    learned
        Whether `unit` and `day_first` were detected in the column.
    unit
        Unit of numbers: a key of `TICKS`, EXCEL, or calendar fields such as yyyymmdd. None if times are no numbers.
    day_first
        Whether dates such as 03/04/2024 begin with the day; None if there are none.
    """

    given: str | None = None
    any_years: bool = False
    learned: bool = False
    unit: str | None = None
    day_first: bool | None = None

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


def learned_form(chunks: Iterable[Any], form: TimeForm, what: str) -> TimeForm:
    """Return the form completed from the chunks of a column; stop at the first chunk that decides it."""
    if form.learned or form.given is not None:
        return replace(form, learned=True, unit=form.given_unit)
    found = DateOrder()
    for chunk in chunks:
        text = is_text(chunk.type)
        if not text and not is_number(chunk.type):
            return replace(form, learned=True)
        present = one_array(chunk).drop_null()
        if len(present) == 0:
            continue
        if not text or (not found.seen and all_numbers(present)):
            return replace(form, learned=True, unit=unit_of(to_numbers(present), what))
        found = found.joined(date_order(present))
        if found.settled:
            break
    return replace(form, learned=True, day_first=found.day_first(what))


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


def with_dashes(text: Any) -> Any:
    """Return an Arrow array of text with dashes in place of slashes; Arrow's own replacement takes 20 times as long."""
    valid, ends, characters = text.buffers()
    if not (len(text) and characters):  # no characters at all
        return text
    bound = np.frombuffer(ends, np.int64 if pa.types.is_large_string(text.type) else np.int32)
    used = slice(
        *bound[[text.offset, text.offset + len(text)]].tolist()
    )  # a slice has the characters of the whole array
    given, made = np.frombuffer(characters, np.uint8), np.empty(characters.size, np.uint8)
    # No byte of a longer character in UTF-8 is that of a slash.
    lower = (given[used] == ord("/")).view(np.uint8) * np.uint8(ord("/") - ord("-"))
    np.subtract(given[used], lower, out=made[used])
    buffers = [valid, ends, pa.py_buffer(made)]
    return pa.Array.from_buffers(text.type, len(text), buffers, text.null_count, text.offset)


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


@dataclass(frozen=True)
class DateOrder:
    """Evidence in dates with the year last: day first, month first, or either possible."""

    day: bool = False
    month: bool = False
    either: bool = False
    seen: bool = False

    def joined(self, other: DateOrder) -> DateOrder:
        """Return the evidence of two chunks together."""
        return DateOrder(
            self.day or other.day, self.month or other.month, self.either or other.either, self.seen or other.seen
        )

    @property
    def settled(self) -> bool:
        """Whether no more chunks are needed: there are no such dates, or one of them is unambiguous."""
        return self.day or self.month or not self.either

    def day_first(self, what: str) -> bool | None:
        """Return whether the day comes first; None if there are no such dates. Raise if the order is ambiguous."""
        if self.day and self.month:
            raise InputError(
                what, "some dates begin with the day and some with the month; write all of them in one form."
            )
        if self.either and not (self.day or self.month):
            raise InputError(
                what,
                f"every date could begin with the day or with the month; give the format with {Option('time_format')}, such "
                "as %d/%m/%Y %H:%M.",
            )
        return None if not self.seen else not self.month


def date_order(text: Any) -> DateOrder:
    """Return the evidence of a text array for the order of day and month."""
    fields = pc.extract_regex(text, pattern=YEAR_LAST).drop_null()
    if len(fields) == 0:
        return DateOrder()
    first, second = (pc.struct_field(fields, name).cast(pa.int64()).to_numpy(zero_copy_only=False) for name in "MD")
    day, month = (first > 12) & (second <= 12), (second > 12) & (first <= 12)
    either = (first <= 12) & (second <= 12) & (first != second)
    return DateOrder(bool(day.any()), bool(month.any()), bool(either.any()), True)


def unit_of(array: Any, what: str) -> str:
    """Return the unit of numbers, or the calendar fields written as a number, by their size."""
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    values = values[np.abs(values) < 2**63]
    if len(values) == 0:
        return "seconds"
    whole = bool(np.all(values == np.floor(values)))
    usual = float(np.median(np.abs(values)))
    if whole:
        for unit, (_, below) in _DIGITS.items():
            if below // 10**4 * 1900 <= usual < below // 10**4 * 2200:
                _, bad = from_digits(values.astype(np.int64), unit)
                if 2 * int(bad.sum()) <= len(values):
                    return unit
    low, high = float(values.min()), float(values.max())
    if _EXCEL_DAYS[0] <= low and high < _EXCEL_DAYS[1] and high - low <= _EXCEL_SPREAD_DAYS:
        if whole:
            raise InputError(
                what,
                f"the numbers could be days of a spreadsheet or seconds; give {Option('time_format', 'excel')}, or "
                f"{Option('time_format', 'seconds')}.",
            )
        return EXCEL
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
            f"some numbers have the size of {others[0]} and some of {others[-1]} since 1970; write all of them in one "
            f"unit, or name it with {Option('time_format')}.",
        )


def from_digits(numbers: Ints, unit: str) -> tuple[Ints, Mask]:
    """Return local seconds from calendar fields written as one number, and which are invalid."""
    clock = _DIGITS[unit][0]
    year, fields = numbers, list[Ints]()
    for _ in range(2 + clock):
        year, field = np.divmod(year, 100)
        fields.insert(0, field)
    # Fields of the clock that are not written are 0.
    return seconds_of(year, *fields, *[np.zeros_like(year)] * (3 - clock))


def from_excel(days: Floats) -> tuple[Ints, Mask]:
    """Return local seconds (rounded) from day numbers of a spreadsheet, and which are invalid."""
    bad = ~((days >= 0) & (days < 2_958_466))
    seconds = np.rint((np.where(bad, _EXCEL_DAYS[0], days) - _EXCEL_DAYS[0]) * 86400)
    return seconds.astype(np.int64), bad


def seconds_of(year: Ints, month: Ints, day: Ints, hour: Ints, minute: Ints, second: Ints) -> tuple[Ints, Mask]:
    """Return local seconds from calendar fields, and which are invalid."""
    bad: Mask = (year < 1) | (year > 9999) | (month < 1) | (month > 12)
    bad |= (hour > 23) | (minute > 59) | (second > 59)
    months = (np.where(bad, 1970, year) - 1970) * 12 + np.where(bad, 1, month) - 1
    first_day = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    bad |= (day < 1) | (day > next_first - first_day)
    return (first_day + day - 1) * 86400 + hour * 3600 + minute * 60 + second, bad
