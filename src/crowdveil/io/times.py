"""Convert times in common forms to whole seconds, and back; local time and UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.notes import ReadNotes
from crowdveil.io.time_forms import (
    EXCEL,
    TICKS,
    YEAR_FIRST,
    TimeForm,
    all_numbers,
    from_excel,
    is_number,
    refuse_mixed,
    seconds_of,
    to_numbers,
    unit_of,
)
from crowdveil.io.values import one_array
from crowdveil.model.arrays import Ints, Mask
from crowdveil.model.flows import Flows

_UNITS_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SPAN_YEARS = (1, 9999)
_SAMPLE_DAYS = 6


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
    raise InputError(what, f"wanted times, but the column holds {kind}; give text, timestamps or seconds.")


def run_lengths(column: Any) -> Ints | None:
    """Return the run lengths of equal successive times if times repeat, as in flows; else None."""
    if not pa.types.is_timestamp(column.type) or column.null_count or len(column) == 0:
        return None
    ticks = column.cast(pa.int64()).to_numpy()
    ends = np.append(np.flatnonzero(ticks[1:] != ticks[:-1]) + 1, len(ticks))
    return np.diff(ends, prepend=0) if 4 * len(ends) < len(ticks) else None


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
    first, last = _year_start(_SPAN_YEARS[0]), _year_start(_SPAN_YEARS[1])
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
        raise InputError(what, "some times have a zone and some have none; write all of them in one form.")
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


FAR_FUTURE = _year_start(2101)
"""The first second after the allowed years."""


@dataclass(frozen=True)
class Clock:
    """Local time in a time zone, from and to UTC.

    When clocks go back, the repeated hour is read as the first of the two. When they go forward, a skipped time is read as
    if the clock had not changed.
    """

    tz: str

    def __post_init__(self) -> None:
        _zone(self.tz)

    def shifts(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Return the moments (UTC) from `low` to `high` at which the offset changes, and the offsets around them."""
        return _shifts(self.tz, low // 86400 - 2, high // 86400 + 2)

    def to_wall(self, utc: Ints) -> Ints:
        """Convert UTC seconds to local seconds."""
        if len(utc) == 0 or self.tz == "UTC":
            return utc
        moments, offsets = self.shifts(int(utc.min()), int(utc.max()))
        shifted: Ints = utc + offsets[np.searchsorted(moments, utc, side="right")]
        return shifted

    def to_utc(self, wall: Ints) -> Ints:
        """Convert local seconds to UTC seconds."""
        if len(wall) == 0 or self.tz == "UTC":
            return wall
        moments, offsets = self.shifts(int(wall.min()), int(wall.max()))
        turns = moments + np.maximum(offsets[:-1], offsets[1:])
        shifted: Ints = wall - offsets[np.searchsorted(turns, wall, side="right")]
        return shifted

    def turns(self, low: int, high: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return half-open ranges of local time from `low` to `high` that were skipped, and that were repeated."""
        moments, offsets = self.shifts(low, high)
        both = list(zip(moments.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
        skipped = [(at + before, at + after) for at, before, after in both if after > before]
        return skipped, [(at + after, at + before) for at, before, after in both if after < before]

    def odd_times(self, wall: Ints) -> tuple[Mask, Mask]:
        """Return which local times did not exist, and which existed twice."""
        masks = np.zeros((2, len(wall)), bool)
        if len(wall) and self.tz != "UTC":
            for mask, ranges in zip(masks, self.turns(int(wall.min()), int(wall.max())), strict=True):
                mask[:] = np.searchsorted(np.array(ranges, np.int64).ravel(), wall, side="right") % 2 == 1
        return masks[0], masks[1]


@lru_cache(maxsize=64)
def _zone(tz: str) -> ZoneInfo:
    try:
        return ZoneInfo(tz)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ParameterError(
            Option("tz"), f"there is no time zone {tz!r}; give one such as Europe/Paris or UTC."
        ) from None


@lru_cache(maxsize=64)
def _shifts(tz: str, first_day: int, last_day: int) -> tuple[Ints, Ints]:
    def offset(moment: int) -> int:
        bounded = min(max(moment, _year_start(1) + 86400 * 2), _year_start(9999))
        delta = datetime.fromtimestamp(bounded, _zone(tz)).utcoffset()
        return int(delta.total_seconds()) if delta is not None else 0

    # Samples find a change if no two lie between them: Recife once moved its clock forward and back within seven days.
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


def note_assumed_zone(notes: ReadNotes, column: str | None, tz: str) -> None:
    """Note that times without a zone are read as UTC, unless the user gave a zone."""
    if tz == "UTC":
        notes.add(f"times in column {column} name no zone and are read as UTC (give their zone with {Option('tz')}).")


_YEARS = "before 1970 or after 2100"
_SPREAD_YEARS = 100


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


def odd_times(times: Seconds, clock: Clock, lengths: Ints | None = None) -> tuple[int, int]:
    """Return how many local times did not exist, and how many existed twice; `lengths` are run lengths of the times."""
    if times.instants:
        return 0, 0
    counts = []
    for mask in clock.odd_times(times.values):
        mask &= ~times.bad
        counts.append(int(np.count_nonzero(mask) if lengths is None else lengths[mask].sum()))
    return counts[0], counts[1]


def far_years(times: Seconds, form: TimeForm) -> Mask | None:
    """Return the rows with times before 1970 or after 2100; None if there are none, or the user gave the form of times."""
    values = times.values
    if form.given is not None or len(values) == 0 or (values.min() >= 0 and values.max() < FAR_FUTURE):
        return None
    far: Mask = ((values < 0) | (values >= FAR_FUTURE)) & ~times.bad
    return far if far.any() else None


def far_reason(column: str | None) -> str:
    """Return the reason why rows with such times are unusable."""
    return f"have a time {_YEARS} in column {column} (if it is right, give {Option('time_format')})"


def refuse_spread(first: int, last: int, form: TimeForm, what: str) -> None:
    """Raise if times are more than 100 years apart."""
    if form.given is None and last - first > _SPREAD_YEARS * 366 * 86400:
        raise InputError(
            what,
            f"times are more than {_SPREAD_YEARS} years apart, so some are probably misread; fix them, or name their form "
            f"with {Option('time_format')}.",
        )


def step_times(flows: Flows, *, as_text: bool = True) -> list[Any]:
    """Return the starts of the steps; None if the data has no times."""
    if flows.step_s is None:
        return [None] * flows.steps
    times: list[Any] = time_column(flows.t, flows.tz, as_text=as_text).to_pylist()
    return times
