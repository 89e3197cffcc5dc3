"""Read times in common forms as whole seconds, and write them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError, Text
from crowdveil.io.notes import ReadNotes
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Floats, Ints, Mask
from crowdveil.model.flows import Flows
from crowdveil.model.time_axis import DAY_S, Clock, year_start

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
    r"\s*(?P<z>Z|z|UTC|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?\s*$"
)
NUMBER = r"^\s*[+-]?\d+(\.\d+)?([eE][+-]?\d+)?\s*$"


@dataclass(frozen=True)
class TimeForm:
    """Form of times: the known part before they are read.

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


_UNITS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SPAN_YEARS = (1, 9999)


@dataclass(frozen=True)
class Seconds:
    """A column of times as whole seconds.

    Attributes
    ----------
    values
        Seconds since 1970-01-01, in UTC if `instants`, else in local time. 0 in bad rows.
    bad
        Rows without a readable time.
    instants
        Whether times are unambiguous instants: with a zone, or numbers since 1970.
    """

    values: Ints
    bad: Mask
    instants: bool


def read_seconds(column: Any, what: str, time_format: TimeForm | str | None = None) -> Seconds:
    """Read an Arrow column of timestamps, dates, numbers (seconds, or finer by their size) or text.

    An unknown unit of numbers is detected in the column; for a chunk of a column, it must be learned before.
    """
    form = time_format if isinstance(time_format, TimeForm) else TimeForm(time_format)
    array = one_array(column)
    kind = array.type
    if pa.types.is_timestamp(kind):
        return _from_ticks(array, _UNITS_A_SECOND[kind.unit], kind.tz is not None)
    if pa.types.is_date(kind):
        return _from_ticks(array.cast(pa.timestamp("s")), 1, False)
    if is_number(kind) and form.given_format is not None:
        whole = array.cast(pa.int64(), safe=False)
        array, kind = pc.if_else(pc.equal(whole.cast(kind), array), whole, None).cast(pa.string()), pa.string()
    if is_number(kind):
        return _from_numbers(array, what, form)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _from_text(array, what, form)
    raise InputError(what, f"Expected times, but the column holds {kind}. Give text, timestamps or seconds.")


def _from_ticks(array: Any, ticks: int, instants: bool) -> Seconds:
    bad = _nulls(array)
    values = array.cast(pa.int64())
    values = (values.fill_null(0) if bad.any() else values).to_numpy(zero_copy_only=False)
    if ticks != 1 and len(values):
        values = values // ticks
    return _in_span(values, bad, instants)


def _from_numbers(array: Any, what: str, form: TimeForm) -> Seconds:
    values = array.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy(zero_copy_only=False)
    bad = ~(np.abs(values) < 2**63)
    unit = form.given_unit or form.unit or unit_of(array, what)
    if unit == EXCEL:
        wall, none = from_excel(np.where(bad, 0.0, values))
        return Seconds(np.where(bad | none, 0, wall), bad | none, False)
    if form.given is None:
        refuse_mixed(values[~bad], what, unit)
    if pa.types.is_integer(array.type):
        exact = array.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False) // TICKS[unit]
    else:
        exact = np.floor(np.where(bad, 0.0, values) / TICKS[unit]).astype(np.int64)
    return _in_span(exact, bad, True)


def _in_span(values: Ints, bad: Mask, instants: bool) -> Seconds:
    """Mark times outside the years 1 to 9999 as bad."""
    first, last = year_start(_SPAN_YEARS[0]), year_start(_SPAN_YEARS[1])
    if len(values) and (values.min() < first or values.max() > last):
        bad = bad | (values < first) | (values > last)
        values = np.where(bad, 0, values)
    return Seconds(values, bad, instants)


def _from_text(array: Any, what: str, form: TimeForm) -> Seconds:
    if form.given_format is not None:
        parsed = pc.strptime(array, format=form.given_format, unit="s", error_is_null=True)
        return _from_ticks(parsed, 1, "%z" in form.given_format)
    present = array.drop_null()
    if form.unit or form.given_unit or (len(present) and all_numbers(present)):
        return _from_numbers(to_numbers(array), what, form)
    try:
        # Text in the common form without a zone takes a tenth of the time.
        return _from_ticks(pc.replace_substring(array, "/", "-").cast(pa.timestamp("s")), 1, False)
    except pa.ArrowInvalid:
        return _from_fields(pc.extract_regex(array, pattern=YEAR_FIRST), what)


def _from_fields(fields: Any, what: str) -> Seconds:
    """Return seconds from the fields of dates, each checked."""

    def number(name: str) -> Ints:
        found = pc.struct_field(fields, name)
        found = pc.if_else(pc.equal(found, ""), "0", found).cast(pa.int64()).fill_null(0)
        values: Ints = found.to_numpy(zero_copy_only=False)
        return values

    values, bad = seconds_of(*map(number, "YMDhms"))
    bad |= _nulls(fields)
    zone = np.asarray(pc.struct_field(fields, "z").fill_null("").to_pylist(), dtype=object)
    zoned = zone != ""
    if zoned.any() and not zoned[~bad].all():
        raise mixed_zones(what)
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


FAR_FUTURE = year_start(2101)
"""The first second after the allowed years."""


def iso_times(t: Ints, tz: str) -> Any:
    """Return local times with their offset from UTC, such as 2026-03-02T08:00:00+01:00."""
    wall = Clock(tz).to_wall(t)
    minutes = (wall - t) // 60
    text = pc.strftime(pa.array(wall, pa.timestamp("s")), format="%Y-%m-%dT%H:%M:%S")
    signs = np.where(minutes < 0, "-", "+")
    hours, rest = np.divmod(np.abs(minutes), 60)
    offsets = [f"{s}{h:02d}:{m:02d}" for s, h, m in zip(signs.tolist(), hours.tolist(), rest.tolist(), strict=True)]
    return pc.binary_join_element_wise(text, pa.array(offsets, pa.string()), "")


def time_column(t: Ints, tz: str, *, as_text: bool) -> Any:
    """Return times for a table: text for CSV, timestamps with their zone for Parquet."""
    return iso_times(t, tz) if as_text else pa.array(t * 1000, pa.timestamp("ms", tz=tz))


def mixed_zones(what: str) -> InputError:
    """Return the error for a column in which some times have a zone."""
    return InputError(what, "some times have a zone and some have none. Write all of them in one form.")


def note_assumed_zone(notes: ReadNotes, column: str | None, tz: str) -> None:
    """Note that times without a zone are read as UTC, unless the user gave a zone."""
    if tz == "UTC":
        notes.add(
            Text(
                "times in column {column} name no zone and are read as UTC (give their zone with {tz}).", column=column
            )
        )


FAR_TIME = "have a time before 1970 or after 2100"
_SPREAD_YEARS = 100
FIX_TIMES = Text("Name the form of the times with {time_format}, fix")
"""The remedy for times that cannot be used; "them" follows."""


def note_clock_changes(notes: ReadNotes, column: str | None, tz: str, missing: int, twice: int) -> None:
    """Note how many local times did not exist, and how many existed twice."""
    notes.number(
        f"times in column {column} that did not exist in {tz}, where clocks went forward, and are read as if they had not",
        missing,
    )
    notes.number(
        f"times in column {column} that existed twice in {tz}, where clocks went back, and are read as the first of the two",
        twice,
    )


def odd_times(times: Seconds, clock: Clock) -> tuple[int, int]:
    """Return how many local times did not exist, and how many existed twice."""
    if times.instants:
        return 0, 0
    skipped, twice = (int(np.count_nonzero(mask & ~times.bad)) for mask in clock.odd_times(times.values))
    return skipped, twice


def far_years(times: Seconds, form: TimeForm) -> Mask | None:
    """Return the rows with times before 1970 or after 2100; None if there are none, or the user gave the form of times."""
    values = times.values
    if form.given is not None or len(values) == 0 or (values.min() >= 0 and values.max() < FAR_FUTURE):
        return None
    far: Mask = ((values < 0) | (values >= FAR_FUTURE)) & ~times.bad
    return far if far.any() else None


def far_reason(column: str | None) -> str:
    """Return the reason why rows with such times are unusable."""
    return f"{FAR_TIME} in column {column}"


def refuse_spread(first: int, last: int, form: TimeForm, what: str) -> None:
    """Raise if times are more than 100 years apart."""
    if form.given is None and last - first > _SPREAD_YEARS * 366 * DAY_S:
        raise InputError(
            what,
            Text(
                "times are more than {most} years apart, so some are probably misread. Fix them, or name their "
                "form with {time_format}.",
                most=_SPREAD_YEARS,
            ),
        )


def step_times(flows: Flows, *, as_text: bool = True) -> list[Any]:
    """Return the starts of the steps; None if the data has no times."""
    if flows.step_s is None:
        return [None] * flows.steps
    times: list[Any] = time_column(flows.t, flows.tz, as_text=as_text).to_pylist()
    return times
