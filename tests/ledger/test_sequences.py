"""Sequences of releases that leak together, though each two of them do not, or though their inputs look different."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import GuaranteeViolatedError, InputError
from crowdveil.io import atomic
from crowdveil.io.manifest import FileEntry
from crowdveil.ledger import examination
from crowdveil.ledger.audit import Published, Records, audit
from crowdveil.ledger.entries import Period, Times, entries
from crowdveil.ledger.store import Ledger

DAY, HOUR = 86400, 3600
K = 10


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return crowdveil.ledger_init(tmp_path / "ledger")


def table(seconds: list[int], people: list[Any] | None = None, **more: Any) -> pa.Table:
    """Return a trip from n to s at each time."""
    n = len(seconds)
    columns = {
        "origin": ["n"] * n, "destination": ["s"] * n,
        "time": pa.array(np.array(seconds) * 1_000_000, pa.timestamp("us")),
    }  # fmt: skip
    return pa.table(columns | ({} if people is None else {"user_id": people}) | more)


def release(data: Any, out: Path, ledger: Path, step: str = "all", **more: Any) -> Any:
    given = {"k": K, "step": step, "attack": False, "report": False, "ledger": ledger}
    return crowdveil.anonymize(data, out, method="suppression", **given | more)


def test_releases_that_a_third_one_connects_are_audited_together(tmp_path: Path, ledger: Path) -> None:
    """A quarter of 40 trips, then January (20) and February (15): March would be 5."""
    months = [[m * 31 * DAY + i * HOUR for i in range(n)] for m, n in enumerate((20, 15, 5))]
    release(table([second for month in months for second in month]), tmp_path / "quarter", ledger)
    release(table(months[0]), tmp_path / "january", ledger)
    with pytest.raises(GuaranteeViolatedError, match="leaves 5 trips"):
        release(table(months[1]), tmp_path / "february", ledger)


def test_a_component_that_is_too_large_is_refused(
    tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = table(list(range(20)))
    release(data, tmp_path / "first", ledger)
    monkeypatch.setattr(examination, "MOST_NUMBERS", 39)
    with pytest.raises(InputError, match="Expected fewer earlier releases"):
        release(data, tmp_path / "second", ledger)
    assert not (tmp_path / "second").exists()


def test_what_was_audited_before_is_not_refused_again() -> None:
    """Overlaps below k of two earlier releases do not matter for rows that no release connects with them."""
    records = Records(np.array([5, 5, 5, 5, 6, 6]), None)
    first = Published("first", np.array([0, 0, 1, 1, 2, 2]))
    crossed = Published("crossed", np.array([0, 1, 1, 0, -1, -1]))
    part = Published("part", np.array([-1, -1, -1, -1, 0, -1]))
    assert audit(records, crossed, [first], 6).passed
    assert audit(records, part, [first, crossed], 6).passed


@pytest.mark.parametrize("what", ["time", "ends", "zone", "minutes"])
def test_the_same_data_in_another_form_are_audited_or_refused(tmp_path: Path, ledger: Path, what: str) -> None:
    """The first hours have 20 and 4 people; a day of 24 would leave 4."""
    seconds = [*range(60, 80), *(HOUR + i * 7 for i in range(1, 5))]
    people = [f"Anna{i}" for i in range(24)]
    ends = {"from": ["north"] * 24, "to": ["south"] * 24}
    later = pa.array((np.array(seconds) + 2 * DAY) * 1_000_000, pa.timestamp("us"))
    data = table(seconds, people, arrival=later, **ends)
    release(data, tmp_path / "hours", ledger, "1h", time="time", origin="origin", destination="destination")
    options: dict[str, Any] = {"time": "time", "origin": "origin", "destination": "destination"}
    if what == "time":
        options["time"] = "arrival"
    elif what == "ends":
        options |= {"origin": "from", "destination": "to"}
    elif what == "zone":
        options |= {"tz": "Pacific/Auckland", "step": "2h"}
    else:
        data = data.set_column(2, "time", pa.array(np.array(seconds) // 60 * 60_000_000, pa.timestamp("us")))
    words = "without most of them" if what == "minutes" else "leaves 4 people"
    with pytest.raises((GuaranteeViolatedError, InputError), match=words):
        release(data, tmp_path / "day", ledger, **{"step": "1d"} | options)
    assert not (tmp_path / "day").exists()


@pytest.mark.parametrize("minutes_first", [False, True])
def test_a_late_trip_does_not_hide_another_form(tmp_path: Path, ledger: Path, minutes_first: bool) -> None:
    """The first hours have 4 and 2 trips, of which one begins at a full minute: a day of minutes would leave 2.

    With a trip of the next day, the six others are a small part of the period.
    """
    seconds = np.array([60, 130, 200, 270, HOUR + 10, HOUR + 80])
    exact, minutes = seconds.tolist(), [*(seconds // 60 * 60).tolist(), DAY + HOUR]
    forms = [(exact, "1h"), (minutes, "1d")][:: -1 if minutes_first else 1]
    release(table(forms[0][0]), tmp_path / "first", ledger, forms[0][1], k=3)
    with pytest.raises(InputError, match="without most of them"):
        release(table(forms[1][0]), tmp_path / "second", ledger, forms[1][1], k=3)


def test_equal_records_in_different_rows_are_refused(tmp_path: Path, ledger: Path) -> None:
    later = pa.array(np.array([*range(20), *range(HOUR, HOUR + 20)]) * 1_000_000, pa.timestamp("us"))
    data = table([0] * 40, arrival=later)
    release(data, tmp_path / "first", ledger, "1h", time="time")
    with pytest.raises(InputError, match="Expected equal records in one flow"):
        release(data, tmp_path / "second", ledger, "1h", time="arrival")


def test_periods_do_not_depend_on_a_zone() -> None:
    january, february = Period(0, 31 * DAY, False), Period(31 * DAY, 59 * DAY, False)
    assert not january.common(february) and january.common(Period(30 * DAY, 59 * DAY, False)) == DAY
    # The same clock readings as moments may be up to 14 hours away.
    assert january.common(Period(31 * DAY + 13 * HOUR, 40 * DAY, True))
    assert not january.common(Period(31 * DAY + 14 * HOUR, 40 * DAY, True))


def test_times_are_counted_within_a_period() -> None:
    """Records of an hour count where a part of them lies in the period; local times where they may."""
    times = Times(np.arange(4) * HOUR, HOUR, False)
    assert times.period == Period(0, 4 * HOUR, False)
    assert times.within(Period(HOUR + 1, 2 * HOUR, False)) == 1 and times.within(Period(HOUR - 1, HOUR + 1, False)) == 2
    assert times.within(Period(4 * HOUR, 5 * HOUR, False)) == 0
    assert times.within(Period(17 * HOUR, 18 * HOUR, True)) == 1 and not times.within(Period(18 * HOUR, DAY, True))


def test_consecutive_days_need_no_statement(tmp_path: Path, ledger: Path) -> None:
    for day in range(3):
        data = table([day * DAY + i * 3600 for i in range(24)])
        made = release(data, tmp_path / f"day{day}", ledger, "1d", tz="Asia/Tokyo", k=5)
    assert made.manifest["ledger"]["entries_audited"] == 0


def people_of(folder: Path) -> list[int]:
    return list(pq.read_table(folder / "flows.parquet")["people"].to_pylist())


def test_numbers_of_people_say_nothing_over_several_releases(tmp_path: Path, ledger: Path) -> None:
    """Hours of 10 and 10 people and a day of 19 would show that one person went twice; the numbers do not."""
    data = table([*range(10), *range(HOUR, HOUR + 10)], [*range(10), *range(9, 19)])
    release(data, tmp_path / "hours", ledger, "1h")
    made = release(data, tmp_path / "day", ledger, "1d")
    assert people_of(tmp_path / "hours") == [10, 10] and people_of(tmp_path / "day") == [10]
    assert made.manifest["ledger"]["tier"] == 0


def test_people_are_rounded_down_to_a_multiple_of_k(tmp_path: Path, ledger: Path) -> None:
    data = table(list(range(37)), list(range(37)))
    made = release(data, tmp_path / "first", ledger)
    assert people_of(tmp_path / "first") == [30]
    found = {guarantee.name: finding for guarantee, finding in crowdveil.verify(tmp_path / "first", original=data)}
    assert found["true-volumes"].holds and found["flow-k-anonymity"].holds
    assert "numbers of people are rounded down to a multiple of 10" in str(made.manifest["guarantees"])
    # Where an earlier release shares records, k stands in the place of every number.
    release(data, tmp_path / "second", ledger)
    assert people_of(tmp_path / "second") == [10]
    assert crowdveil.ledger_add(ledger, tmp_path / "first", data).entry == 3, "a copy gives nothing new"
    crowdveil.anonymize(data, tmp_path / "third", method="suppression", k=9, step="all", attack=False, report=False)
    with pytest.raises(GuaranteeViolatedError, match="it has exact numbers of people"):
        crowdveil.ledger_add(ledger, tmp_path / "third", data)
    explained = "\n".join(crowdveil.ledger_explain(ledger))
    assert (
        "exact numbers of people" in explained and "changed by fewer" not in explained and "derivation" not in explained
    )


def quarters(volume: int) -> pa.Table:
    """Return flows of four quarters of an hour."""
    times = pa.array(np.arange(4) * 900 * 1_000_000, pa.timestamp("us"))
    return pa.table({"origin": ["n"] * 4, "destination": ["s"] * 4, "time": times, "volume": [30, volume, 30, 30]})


def test_the_manifest_states_the_length_of_a_step(tmp_path: Path, ledger: Path) -> None:
    """Flows with times of their own, and no option: a correction from 21 to 22 is refused, or keeps its value."""
    options = {"k": K, "attack": False, "report": False}
    made = crowdveil.anonymize(quarters(21), tmp_path / "first", method="suppression", ledger=ledger, **options)
    assert made.manifest["step_seconds"] == 900
    with pytest.raises(GuaranteeViolatedError, match="leaves 1 trip"):
        crowdveil.anonymize(quarters(22), tmp_path / "second", method="suppression", ledger=ledger, **options)
    crowdveil.anonymize(
        quarters(22), tmp_path / "kept", method="suppression", ledger=ledger, keep_unchanged=True, **options
    )
    assert pq.read_table(tmp_path / "kept" / "flows.parquet")["volume"].to_pylist() == [30, 21, 30, 30]
    derived = crowdveil.derive(tmp_path / "first", tmp_path / "half", step="30min", report=False)
    assert derived.manifest["step_seconds"] == 1800
    with pytest.raises(crowdveil.CrowdveilError, match="holds whole ones"):
        crowdveil.derive(tmp_path / "first", tmp_path / "tenths", step="10min", report=False)


@pytest.mark.parametrize("coarse_first", [False, True])
def test_corrections_do_not_show_in_sums(tmp_path: Path, ledger: Path, coarse_first: bool) -> None:
    """Hours of 19 and 15 people, and a corrected day of 35: 2 were removed and 3 added."""
    seconds = [*range(19), *range(HOUR, HOUR + 15)]
    before = table(seconds, list(range(34)))
    after = table([*seconds[1:-1], 18 * 60, 19 * 60, HOUR + 1200], [*range(1, 33), 90, 91, 92])
    steps = ("1d", "1h") if coarse_first else ("1h", "1d")
    release(before, tmp_path / "first", ledger, steps[0])
    with pytest.raises(GuaranteeViolatedError, match="differ in 5 people"):
        release(after, tmp_path / "second", ledger, steps[1])
    release(before, tmp_path / "third", ledger, steps[1])


def test_corrections_do_not_show_in_sums_over_several_releases(tmp_path: Path, ledger: Path) -> None:
    parts = [[*range(19)], [*range(HOUR, HOUR + 15)]]
    for name, part, people in (("a", parts[0], range(19)), ("b", parts[1], range(19, 34))):
        release(table(part, list(people)), tmp_path / name, ledger, "1h")
    after = table([*parts[0][1:], *parts[1][:-1], 1200, 1201, HOUR + 1200], [*range(1, 33), 90, 91, 92])
    with pytest.raises(GuaranteeViolatedError, match="differ in 5 people"):
        release(after, tmp_path / "day", ledger, "1d")


def test_an_edited_derived_release_is_refused(tmp_path: Path, ledger: Path) -> None:
    data = table([*range(20), *range(HOUR, HOUR + 15)], list(range(35)))
    release(data, tmp_path / "hours", ledger, "1h")
    made = crowdveil.derive(tmp_path / "hours", tmp_path / "days", step="1d", report=False)
    assert crowdveil.ledger_check(ledger, tmp_path / "days", None).passed
    path = tmp_path / "days" / "flows.parquet"
    flows = pq.read_table(path)
    place = flows.column_names.index("volume")
    pq.write_table(flows.set_column(place, "volume", pa.array([38])), path)
    files = made.stated.files | {"data": FileEntry.of(path)}
    made.stated.model_copy(update={"files": files}).write(tmp_path / "days")
    (tmp_path / "hours").rename(tmp_path / "elsewhere")
    with pytest.raises(GuaranteeViolatedError, match="not sums of rows of entry 1"):
        crowdveil.ledger_add(ledger, tmp_path / "days")


def test_a_release_in_place_is_never_withdrawn(tmp_path: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, move = table(list(range(20))), atomic._move

    def moved_and_failed(*paths: Any) -> None:
        move(*paths)
        raise OSError("the disk went away")

    monkeypatch.setattr(atomic, "_move", moved_and_failed)
    with pytest.raises(crowdveil.CrowdveilError):
        release(data, tmp_path / "out", ledger)
    assert (tmp_path / "out" / "manifest.json").exists()
    assert [entry.state for entry in entries(Ledger(ledger))] == ["prepared"]
