"""Read times in common forms as whole seconds, and write them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from crowdveil.errors import InputError, Text
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
from crowdveil.model.time_axis import DAY_S, Clock, year_start

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
"""What to do about times that cannot be used; "them" follows."""


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
