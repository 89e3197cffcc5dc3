"""Times in any form against `datetime`, and clocks on the wall against `zoneinfo`."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import available_timezones

import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.times import TimeForm, learned_form, read_seconds
from crowdveil.io.trajectories import read_trajectories

unhurried = settings(deadline=None, max_examples=tries(100))
EPOCH = datetime(1970, 1, 1)
ZONES = sorted(available_timezones())
moments = st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9998, 12, 30))


def whole_seconds(moment: datetime) -> int:
    """Seconds since 1970, of UTC where the zone is known; rounded down, before 1970 too."""
    naive = moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment
    return (naive - EPOCH) // timedelta(seconds=1)


def read(*texts: str | None, time_format: str | None = None) -> tuple[list[int], list[bool], bool]:
    seconds = read_seconds(pa.array(texts, pa.string()), "here", time_format)
    return seconds.values.tolist(), seconds.bad.tolist(), seconds.instants


@st.composite
def iso_texts(draw: st.DrawFn, zoned: bool) -> tuple[str, int]:
    moment = draw(moments)
    day = draw(st.sampled_from(["%Y-%m-%d", "%Y/%m/%d"]))
    clock = draw(st.sampled_from(["%H:%M:%S.%f", "%H:%M:%S", "%H:%M", "%H", "only a day"]))
    if clock == "only a day":
        moment = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    elif clock in ("%H:%M", "%H"):
        moment = moment.replace(minute=0 if clock == "%H" else moment.minute, second=0, microsecond=0)
    # strftime does not pad early years on every machine
    text = moment.strftime(day).lstrip("0").rjust(10, "0")
    if clock != "only a day":
        text += draw(st.sampled_from(["T", " "])) + moment.strftime(clock)
    if not zoned:
        return text, whole_seconds(datetime.fromisoformat(text.replace("/", "-")))
    minutes = draw(st.integers(-14 * 60, 14 * 60))
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    suffix = draw(st.sampled_from([f"{sign}{hours:02d}:{rest:02d}", f"{sign}{hours:02d}{rest:02d}", "Z", " UTC"]))
    offset = timezone(timedelta(minutes=minutes)) if suffix[0] in "+-" else UTC
    plain = datetime.fromisoformat(text.replace("/", "-"))
    return text + suffix, whole_seconds(plain) - int(offset.utcoffset(None).total_seconds())


@unhurried
@given(st.lists(iso_texts(zoned=False), min_size=1, max_size=8))
def test_texts_without_zone_are_read_as_datetime_reads_them(written: list[tuple[str, int]]) -> None:
    values, bad, instants = read(*(text for text, _ in written))
    assert values == [wanted for _, wanted in written]
    assert not any(bad)
    assert not instants


@unhurried
@given(st.lists(iso_texts(zoned=True), min_size=1, max_size=8))
def test_texts_with_zone_are_read_as_datetime_reads_them(written: list[tuple[str, int]]) -> None:
    values, bad, instants = read(*(text for text, _ in written))
    assert values == [wanted for _, wanted in written]
    assert not any(bad)
    assert instants


@unhurried
@given(st.lists(moments, min_size=1, max_size=8), st.sampled_from([None, "Z"]))
def test_the_way_of_reading_does_not_depend_on_other_rows(given_moments: list[datetime], zone: str | None) -> None:
    """Rows in the common form are read the quick way; one row of another form makes all of them take the slow one."""
    texts = [m.replace(microsecond=0).isoformat() + (zone or "") for m in given_moments]
    alone, _, _ = read(*texts)
    together, bad, _ = read(*texts, "no time")
    assert together[:-1] == alone
    assert bad == [False] * len(texts) + [True]


@pytest.mark.parametrize(
    "text",
    ["2023-02-29", "2024-13-01", "2024-00-10", "2024-01-00", "2024-04-31 10:00", "2024-01-01 24:00", "2024-01-01 10:60",
     "2024-01-01 10:00:60",  "01/02/2024", "2024-01-01 1000", "2024-01-01 10:", "noon", "0000-01-01",
     "2024-01-01T10:00:00+1", "2024-01-01T10:00+99:99", "2024-01-01T10:00-24:00", "12024-01-01",
     "2024-01-01 13:00:00 PM", "", "-"],
)  # fmt: skip
def test_what_is_no_time_is_bad_alone_and_in_company(text: str) -> None:
    for texts in ((text,), (text, "2024-01-01 10:00:00"), (text, "2024-01-01 10:00:00.5")):
        try:
            _, bad, _ = read(*texts)
        except InputError:
            continue
        assert bad == [True] + [False] * (len(texts) - 1), texts


def test_missing_texts_are_bad() -> None:
    assert read(None, "2024-01-01") == ([0, 1704067200], [True, False], False)
    assert read(None, "2024-01-01T00:00Z") == ([0, 1704067200], [True, False], True)
    assert read(None, None)[1] == [True, True]


def test_texts_with_and_without_zone_do_not_mix() -> None:
    with pytest.raises(InputError, match="here: some times have a zone and some have none"):
        read("2024-01-01 10:00", "2024-01-01 10:00Z")


def test_a_format_of_the_users_own() -> None:
    assert read("08/06/2008 07:15", "x", time_format="%d/%m/%Y %H:%M") == ([1212909300, 0], [False, True], False)
    # The zone in a format is kept.
    values, bad, instants = read("2008-06-08 07:15 +0200", time_format="%Y-%m-%d %H:%M %z")
    assert (values, bad, instants) == ([1212909300 - 7200], [False], True)


@unhurried
@given(
    st.lists(st.integers(10**9, 4 * 10**9), min_size=1, max_size=9), st.sampled_from(["s", "ms", "us", "ns"]), st.data()
)
def test_numbers_are_seconds_or_finer_by_their_size(seconds: list[int], unit: str, data: st.DataObject) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    finer = [s * ticks + data.draw(st.integers(0, ticks - 1)) for s in seconds]
    for column in (pa.array(finer, pa.int64()), pa.array([str(n) for n in finer]), pa.array(finer, pa.timestamp(unit))):
        read = read_seconds(column, "here")
        assert read.values.tolist() == seconds, column.type
        assert not read.bad.any()
        assert read.instants == (not pa.types.is_timestamp(column.type))
    halves = read_seconds(pa.array([float(s) + 0.5 for s in seconds]), "here")
    assert halves.values.tolist() == seconds


def test_numbers_that_are_no_times_are_bad() -> None:
    read = read_seconds(pa.array([1e9, float("nan"), float("inf"), None, -float("inf")]), "here")
    assert read.bad.tolist() == [False, True, True, True, True]
    assert read.values.tolist() == [10**9, 0, 0, 0, 0]
    with pytest.raises(InputError, match="some of nanoseconds"):
        read_seconds(pa.array([10**9, 10**9 + 1, 2**62], pa.int64()), "here")
    unsigned = read_seconds(pa.array([10**9, 2**64 - 1], pa.uint64()), "here")
    assert unsigned.bad.tolist() == [False, True]


@unhurried
@given(st.lists(st.none() | st.datetimes(datetime(1800, 1, 1), datetime(2200, 1, 1)), min_size=1, max_size=9),
       st.sampled_from(["s", "ms", "us", "ns"]), st.sampled_from([None, "UTC", "Asia/Kathmandu"]))  # fmt: skip
def test_timestamps_are_rounded_down(given_moments: list[datetime | None], unit: str, zone: str | None) -> None:
    column = pa.array(given_moments, pa.timestamp("us")).cast(pa.timestamp(unit), safe=False)
    whole = [None if m is None else whole_seconds(m) for m in column.cast(pa.timestamp("us")).to_pylist()]
    read = read_seconds(column.cast(pa.timestamp(unit, zone)) if zone else column, "here")
    assert read.bad.tolist() == [m is None for m in given_moments]
    assert [None if b else v for v, b in zip(read.values.tolist(), read.bad.tolist(), strict=True)] == whole
    assert read.instants == (zone is not None)


def test_dates_and_dictionaries_and_chunks() -> None:
    days = pa.array([date(1969, 12, 31), None, date(2024, 2, 29)])
    assert read_seconds(days, "here").values.tolist() == [-86400, 0, 1709164800]
    texts = pa.array(["2024-02-29", "2024-02-29"]).dictionary_encode()
    assert read_seconds(texts, "here").values.tolist() == [1709164800] * 2
    chunks = pa.chunked_array([["2024-02-29"], ["2024-02-29 00:00:01Z"][:0], ["2024-02-29 00:01"]])
    assert read_seconds(chunks, "here").values.tolist() == [1709164800, 1709164860]
    nothing = read_seconds(pa.chunked_array([], pa.string()), "here")
    assert len(nothing.values) == 0
    assert not nothing.bad.any()


@pytest.mark.parametrize(
    "column", [pa.array([True]), pa.array([1], pa.time32("s")), pa.array([[1]]), pa.array([b"2024"])]
)
def test_columns_of_other_types_are_refused(column: pa.Array) -> None:
    with pytest.raises(InputError, match="here: Expected times"):
        read_seconds(column, "here")


def test_dates_written_as_numbers_are_not_taken_for_seconds() -> None:
    for numbers in ([20240131, 20240201], [200806080440], [20080608044033, 20080609000000]):
        column = pa.array(numbers)
        for given_column in (column, column.cast(pa.string()), column.cast(pa.float64())):
            with pytest.raises(InputError, match=r"could be dates.*time_format="):
                read_seconds(given_column, "here")


def plain_day(text: str) -> int:
    return whole_seconds(datetime.fromisoformat(text))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()])
@pytest.mark.parametrize(
    ("numbers", "wanted", "form"),
    [([20080608044033, 20080609000000], ["2008-06-08 04:40:33", "2008-06-09"], "%Y%m%d%H%M%S"),
     ([200806080440, 200806082359], ["2008-06-08 04:40", "2008-06-08 23:59"], "%Y%m%d%H%M"),
     ([20080608, 19991231], ["2008-06-08", "1999-12-31"], "%Y%m%d")],
)  # fmt: skip
def test_calendar_fields_written_as_a_number(
    kind: pa.DataType, numbers: list[int], wanted: list[str], form: str
) -> None:
    column = pa.array(numbers, pa.int64()).cast(pa.string()) if kind == pa.string() else pa.array(numbers, kind)
    seconds = read_seconds(column, "here", form)
    assert seconds.values.tolist() == [plain_day(text) for text in wanted]
    assert (seconds.bad.any(), seconds.instants) == (False, False)


def test_missing_and_broken_numbers_are_no_dates() -> None:
    seconds = read_seconds(pa.array([20080608.0, None, 20080608.5]), "here", "%Y%m%d")
    assert seconds.bad.tolist() == [False, True, True]


@unhurried
@given(st.lists(st.datetimes(datetime(2001, 1, 1), datetime(2050, 1, 1)), min_size=1, max_size=9))
def test_days_of_a_spreadsheet(given_moments: list[datetime]) -> None:
    """Day 0 is 1899-12-30."""
    given_moments = [m.replace(hour=7, microsecond=0) for m in given_moments]
    days = [(m - datetime(1899, 12, 30)) / timedelta(days=1) for m in given_moments]
    for column in (pa.array(days), pa.array([repr(d) for d in days])):
        seconds = read_seconds(column, "here", "excel")
        assert seconds.values.tolist() == [whole_seconds(m) for m in given_moments]
        assert not seconds.instants
        with pytest.raises(InputError, match='time_format="excel"'):
            read_seconds(column, "here")


def test_numbers_that_could_be_days_or_seconds_are_refused() -> None:
    days = pa.array([39607, 39608])
    with pytest.raises(InputError, match='time_format="excel"'):
        read_seconds(days, "here")
    assert read_seconds(days, "here", "excel").values.tolist() == [plain_day("2008-06-08"), plain_day("2008-06-09")]
    assert read_seconds(days, "here", "seconds").values.tolist() == [39607, 39608]
    assert read_seconds(pa.array([0, 39607, 86399]), "here").values.tolist() == [0, 39607, 86399]


@pytest.mark.parametrize("as_text", [False, True])
def test_seconds_and_milliseconds_do_not_mix(as_text: bool) -> None:
    for numbers in ([1212900000, 1212900001000], [1212900000000, 0], [1212900000, 1212900000000000]):
        column = pa.array(numbers)
        with pytest.raises(InputError, match="Write all of them in one unit"):
            read_seconds(column.cast(pa.string()) if as_text else column, "here")


@pytest.mark.parametrize("text", ["25/12/2024", "12/25/2024", "2024-01-01 12:30 AM"])
def test_other_forms_of_dates_need_a_format(text: str) -> None:
    assert read(text)[1] == [True]


def test_the_unit_of_numbers_is_learned_from_the_first_piece_with_values() -> None:
    numbers = learned_form([pa.array([None], pa.int64()), pa.array([1212900000, 1212900001])], TimeForm(), "here")
    assert numbers.unit == "seconds"
    with pytest.raises(InputError, match="one unit"):
        read_seconds(pa.array([1212900000000]), "here", numbers)
    assert learned_form([pa.array(["2024-01-01"])], TimeForm(), "here") == TimeForm()


def test_readers_note_how_many_times_did_not_exist_or_came_twice() -> None:
    times = ["2023-03-26 02:30:00", "2023-03-26 02:45:00", "2023-10-29 02:30:00", "2023-07-01 12:00:00"]
    where = {"lat": [48.0] * 4, "lon": [2.0] * 4, "user_id": ["a", "b", "a", "b"]}
    ends = {"origin": ["x"] * 4, "destination": ["y"] * 4}
    for read, table in (
        (read_trajectories, pa.table({**where, "time": times})),
        (read_flows, pa.table({**ends, "time": times})),
    ):
        notes = ReadNotes()
        read(table, tz="Europe/Paris", notes=notes)
        skipped, twice = notes.sentences()[-2:]
        assert skipped.startswith("times in column time that did not exist in Europe/Paris") and skipped.endswith(
            ": 2."
        )
        assert twice.startswith("times in column time that existed twice in Europe/Paris") and twice.endswith(": 1.")
        published = notes.published(2)["notes"][-2:]
        assert published[0].endswith(": 2.") and published[1].endswith(": fewer than 2.")
        elsewhere = ReadNotes()
        read(table, tz="UTC", notes=elsewhere)
        assert not any("did not exist" in said or "existed twice" in said for said in elsewhere.sentences())
