"""Times in any common form to whole seconds, and back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.model.arrays import Ints, Mask

_UNITS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TEXT = (
    r"^\s*(?P<Y>\d{4})[-/.](?P<M>\d{1,2})[-/.](?P<D>\d{1,2})"
    r"(?:[T ](?P<h>\d{1,2})(?::(?P<m>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?)?)?"
    r"\s*(?P<z>Z|z|UTC|[+-]\d{2}:?\d{2})?\s*$"
)
_NUMBER = r"^\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*$"
_SPAN_YEARS = (1, 9999)
_SAMPLE_DAYS = 6


@dataclass(frozen=True)
class Seconds:
    """A column of times as whole seconds.

    Attributes
    ----------
    values
        Seconds since 1970-01-01, of UTC where `instants`, else of the clock on the wall. 0 in bad rows.
    bad
        Rows without a time that can be read.
    instants
        Whether the column said which moment it means: it had a zone, or was a number.
    """

    values: Ints
    bad: Mask
    instants: bool


def read_seconds(column: Any, what: str, time_format: str | None = None) -> Seconds:
    """Read an Arrow column of timestamps, dates, numbers (seconds, or finer by their size) or text."""
    if isinstance(column, pa.ChunkedArray) and pa.types.is_timestamp(column.type) and column.null_count == 0:
        return _from_pieces(column)
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # no chunks at all
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    kind = array.type
    if pa.types.is_dictionary(kind):
        array, kind = array.dictionary_decode(), kind.value_type
    if pa.types.is_timestamp(kind):
        return _from_ticks(array, _UNITS_A_SECOND[kind.unit], kind.tz is not None)
    if pa.types.is_date(kind):
        return _from_ticks(array.cast(pa.timestamp("s")), 1, False)
    if pa.types.is_integer(kind) and time_format is not None:
        array, kind = array.cast(pa.string()), pa.string()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _from_numbers(array, what)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _from_text(array, what, time_format)
    raise InputError(f"{what}: wanted times, but the column holds {kind}; give text, timestamps or seconds.")


def run_lengths(column: Any) -> Ints | None:
    """How often each time stands in a row, where times repeat as those of flows do; None where they do not."""
    if not pa.types.is_timestamp(column.type) or column.null_count or len(column) == 0:
        return None
    ticks = column.cast(pa.int64()).to_numpy()
    ends = np.append(np.flatnonzero(ticks[1:] != ticks[:-1]) + 1, len(ticks))
    return np.diff(ends, prepend=0) if 4 * len(ends) < len(ticks) else None


def _from_pieces(column: Any) -> Seconds:
    """Timestamps piece by piece into one array, without a copy of the whole."""
    values, bad, start = np.empty(len(column), np.int64), np.zeros(len(column), bool), 0
    for piece in column.chunks:
        read = _from_ticks(piece, _UNITS_A_SECOND[column.type.unit], column.type.tz is not None)
        values[start : start + len(piece)] = read.values
        bad[start : start + len(piece)] = read.bad
        start += len(piece)
    return Seconds(values, bad, column.type.tz is not None)


def _from_ticks(array: Any, ticks: int, instants: bool) -> Seconds:
    bad = _nulls(array)
    values = array.cast(pa.int64())
    values = (values.fill_null(0) if bad.any() else values).to_numpy(zero_copy_only=False)
    if ticks != 1 and len(values):
        # Arrow divides several times faster than numpy, but towards zero; before 1970 that is the wrong way.
        early = values.min() < 0
        values = values // ticks if early else pc.divide(pa.array(values), ticks).to_numpy(zero_copy_only=False)
    return _in_span(values, bad, instants)


def _from_numbers(array: Any, what: str) -> Seconds:
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    bad = ~(np.abs(values) < 2**63)
    usual = float(np.median(np.abs(values[~bad]))) if not bad.all() else 0.0
    if 19_000_101 <= usual <= 22_001_231 and np.all(values[~bad] == np.floor(values[~bad])):
        raise InputError(
            f"{what}: the numbers look like dates written as 20240131; give --time-format, or another form."
        )
    # Seconds of this era have ten digits; thirteen are milliseconds, sixteen microseconds, nineteen nanoseconds.
    ticks = 1 if usual < 1e11 else 10**3 if usual < 1e14 else 10**6 if usual < 1e17 else 10**9
    if pa.types.is_integer(array.type):
        exact = array.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False) // ticks
    else:
        exact = np.floor(np.where(bad, 0.0, values) / ticks).astype(np.int64)
    return _in_span(exact, bad, True)


def _in_span(values: Ints, bad: Mask, instants: bool) -> Seconds:
    """Times of years that a calendar can show; others are bad."""
    first, last = _year_start(_SPAN_YEARS[0]), _year_start(_SPAN_YEARS[1])
    if len(values) and (values.min() < first or values.max() > last):
        bad = bad | (values < first) | (values > last)
        values = np.where(bad, 0, values)
    return Seconds(values, bad, instants)


def _from_text(array: Any, what: str, time_format: str | None) -> Seconds:
    if time_format is not None:
        parsed = pc.strptime(array, format=time_format, unit="s", error_is_null=True)
        return _from_ticks(parsed, 1, "%z" in time_format)
    try:
        # The quick way, for text in one common form without a zone.
        plain = pc.replace_substring(array, "/", "-")
        return _from_ticks(plain.cast(pa.timestamp("s")), 1, False)
    except pa.ArrowInvalid:
        pass
    present = array.drop_null()
    if len(present) and pc.all(pc.match_substring_regex(present, _NUMBER)).as_py():
        return _from_numbers(_text_to_numbers(pc.utf8_trim_whitespace(array)), what)
    return _from_fields(pc.extract_regex(array, pattern=_TEXT), what)


def _text_to_numbers(text: Any) -> Any:
    try:
        return text.cast(pa.int64())  # exact, where nanoseconds are too long for a float
    except pa.ArrowInvalid:
        return text.cast(pa.float64())


def _from_fields(fields: Any, what: str) -> Seconds:
    """Seconds from the parts of a date, each checked."""
    bad = _nulls(fields)

    def number(name: str) -> Ints:
        part = pc.struct_field(fields, name)
        part = pc.if_else(pc.equal(part, ""), "0", part).cast(pa.int64()).fill_null(0)
        values: Ints = part.to_numpy(zero_copy_only=False)
        return values

    year, month, day = number("Y"), number("M"), number("D")
    hour, minute, second = number("h"), number("m"), number("s")
    bad |= (year < 1) | (month < 1) | (month > 12) | (hour > 23) | (minute > 59) | (second > 59)
    months = (np.where(bad, 1970, year) - 1970) * 12 + np.where(bad, 1, month) - 1
    first_day = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    next_first = (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    bad |= (day < 1) | (day > next_first - first_day)
    values = (first_day + day - 1) * 86400 + hour * 3600 + minute * 60 + second
    zone = np.asarray(pc.struct_field(fields, "z").fill_null("").to_pylist(), dtype=object)
    zoned = zone != ""
    if zoned.any() and not zoned[~bad].all():
        raise InputError(f"{what}: some times have a zone and some have none; write all of them in one form.")
    if zoned.any():
        names, which = np.unique(zone.astype(str), return_inverse=True)
        values = values - np.array([_zone_seconds(z) for z in names], np.int64)[which]
    return Seconds(np.where(bad, 0, values), bad, bool(zoned.any()))


def _zone_seconds(text: str) -> int:
    if text in ("", "Z", "z", "UTC"):
        return 0
    digits = text[1:].replace(":", "")
    return (1 if text[0] == "+" else -1) * (int(digits[:2]) * 3600 + int(digits[2:]) * 60)


def _nulls(array: Any) -> Mask:
    if array.null_count == 0:
        return np.zeros(len(array), bool)
    mask: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return mask


def _year_start(year: int) -> int:
    return int(datetime(year, 1, 1, tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Clock:
    """The clock on the wall in a time zone, from and to UTC.

    Where the clock is put back, the hour that comes twice is read as the first of the two; where it is put forward,
    a time that no clock showed is read as if it had not been.
    """

    tz: str

    def __post_init__(self) -> None:
        _zone(self.tz)

    def shifts(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Moments (UTC) from `low` to `high` at which the offset changes, and the offsets before and after each."""
        return _shifts(self.tz, low // 86400 - 2, high // 86400 + 2)

    def to_wall(self, utc: Ints) -> Ints:
        """UTC seconds to seconds of the wall clock."""
        if len(utc) == 0 or self.tz == "UTC":
            return utc
        moments, offsets = self.shifts(int(utc.min()), int(utc.max()))
        shifted: Ints = utc + offsets[np.searchsorted(moments, utc, side="right")]
        return shifted

    def to_utc(self, wall: Ints) -> Ints:
        """Seconds of the wall clock to UTC seconds."""
        if len(wall) == 0 or self.tz == "UTC":
            return wall
        moments, offsets = self.shifts(int(wall.min()), int(wall.max()))
        turns = moments + np.maximum(offsets[:-1], offsets[1:])
        shifted: Ints = wall - offsets[np.searchsorted(turns, wall, side="right")]
        return shifted


@lru_cache(maxsize=64)
def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(f"tz: there is no time zone {tz!r}; give one such as Europe/Paris or UTC.") from None


@lru_cache(maxsize=64)
def _shifts(tz: str, first_day: int, last_day: int) -> tuple[Ints, Ints]:
    def offset(moment: int) -> int:
        bounded = min(max(moment, _year_start(1) + 86400 * 2), _year_start(9999))
        delta = datetime.fromtimestamp(bounded, _zone(tz)).utcoffset()
        return int(delta.total_seconds()) if delta is not None else 0

    # Samples find every change if no two lie between them: Recife once put its clock on and back within seven days.
    days = range(first_day, last_day + 1 + _SAMPLE_DAYS, _SAMPLE_DAYS)
    seen = [offset(d * 86400) for d in days]
    moments, offsets = [], [seen[0]]
    for day, before, after in zip(days, seen, seen[1:], strict=False):
        if before != after:
            low, high = day * 86400, (day + _SAMPLE_DAYS) * 86400
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if offset(middle) == before else (low, middle)
            moments.append(high)
            offsets.append(after)
    return np.array(moments, np.int64), np.array(offsets, np.int64)


def iso_times(t: Ints, tz: str) -> Any:
    """Times on the wall with their offset from UTC, such as 2026-03-02T08:00:00+01:00."""
    wall = Clock(tz).to_wall(t)
    minutes = (wall - t) // 60
    text = pc.strftime(pa.array(wall, pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
    signs = np.where(minutes < 0, "-", "+")
    hours, rest = np.divmod(np.abs(minutes), 60)
    offsets = [f"{s}{h:02d}:{m:02d}" for s, h, m in zip(signs.tolist(), hours.tolist(), rest.tolist(), strict=True)]
    return pc.binary_join_element_wise(text, pa.array(offsets, pa.string()), "")


def time_column(t: Ints, tz: str, *, as_text: bool) -> Any:
    """Times for a table: text for CSV, timestamps with their zone for Parquet."""
    return iso_times(t, tz) if as_text else pa.array(t * 1000, pa.timestamp("ms", tz=tz))


def say_zone(notes: ReadNotes, column: str | None, tz: str) -> None:
    """Tell that times without a zone are read as UTC, unless the user named a zone."""
    if tz == "UTC":
        notes.say(f"times in column {column} name no zone and are read as UTC (name theirs with --tz).")
