"""Ids of people: what is one person's, against a plain twin, on every path that reads people."""

from __future__ import annotations

import unicodedata
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.flows import read_flows, read_trips
from crowdveil.io.notes import ReadNotes
from crowdveil.io.person_ids import count_case_variants, normalized_ids
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.zones import Zones

ZONES = Zones.from_ids(["7", "12"])
BLANKS = ["", " ", "\t", "\u00a0", "\u2003 ", "\u3000"]
WORDS = ["bob", "Bob", "BOB", "e\u0301", "\u00e9", "1e0", "0x1", "1.2.3", "-", "+", ".5", "007a", "\u00b5"]


@st.composite
def spelled(draw: st.DrawFn) -> str:
    number = draw(st.sampled_from(["0", "1", "10", "100", "12345678901234567890", "12345678901234567891", "1.5", "7"]))
    point = "" if "." in number else draw(st.sampled_from(["", ".", ".0", ".000"]))
    tail = draw(st.sampled_from(["", "0", "00"])) if "." in number else ""
    text = draw(st.sampled_from(["", "+", "-", "0", "-00", "+0"])) + number + point + tail
    text = draw(st.sampled_from([text, draw(st.sampled_from(WORDS)), "", "NA", "nan"]))
    return draw(st.sampled_from(BLANKS)) + text + draw(st.sampled_from(BLANKS))


def plain(text: str | None) -> Any:
    """Who an id names: a number, a text, or nobody. The decimal module compares numbers of any length exactly."""
    text = unicodedata.normalize("NFC", text or "").strip()
    if text in ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"):
        return None
    if set(text) <= set("+-.0123456789") and text[-1:] != "-" and not text.lstrip("+-").startswith("."):
        try:
            return abs(Decimal(text)) if Decimal(text) == 0 else Decimal(text)
        except InvalidOperation:
            pass
    return text


@settings(deadline=None, max_examples=tries(300))
@given(st.lists(st.none() | spelled(), min_size=1, max_size=12), st.booleans())
def test_two_ids_are_one_where_the_twin_says_so(texts: list[str | None], numbered: bool) -> None:
    column = pa.array(texts, pa.string())
    found = normalized_ids(column.dictionary_encode() if numbered else column, "here").to_pylist()
    for one, person in zip(texts, found, strict=True):
        assert (person is None) == (plain(one) is None)
        for other, another in zip(texts, found, strict=True):
            if person is not None and another is not None:
                assert (person == another) == (plain(one) == plain(other)), (one, other)
    assert normalized_ids(pa.array(found, pa.string()), "here").to_pylist() == found


def test_numbers_stored_as_floats_are_whole_ids() -> None:
    found = normalized_ids(pa.array([12.0, None, float("nan"), 1e17, 2.5]), "here")
    assert found.to_pylist() == ["12", None, None, "100000000000000000", "2.5"]
    assert normalized_ids(pa.array([2**63 - 1, 2**53 + 1]), "here").to_pylist() == [2**63 - 1, 2**53 + 1]


def test_ids_alike_but_for_case_are_counted() -> None:
    assert count_case_variants(pa.array(["bob", "Bob", "BOB", "ann", "\u00c4", "\u00e4"])) == 5
    assert count_case_variants(pa.array([1, 2])) == 0


# Every way to read people.

IDS = ["1", " 01", "1.0", "+1", "bob", "bob\u00a0", "Bob", "2"]
"""Four people, or three where case does not matter."""


def trip_sources(ids: list[str | None], tmp_path: Path) -> list[tuple[str, Any, Any]]:
    n = len(ids)
    table = pa.table({"origin": ["7"] * n, "destination": ["12"] * n, "user_id": pa.array(ids, pa.string())})
    pq.write_table(table, tmp_path / "trips.parquet")
    lines = [f'7,12,"{i or ""}"' for i in ids]
    (tmp_path / "trips.csv").write_text("origin,destination,user_id\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return [
        ("Parquet", tmp_path / "trips.parquet", ZONES), ("CSV", tmp_path / "trips.csv", None),
        ("numbered", table.set_column(2, "user_id", table["user_id"].dictionary_encode()), None),
        ("pandas", table.to_pandas(), None),
    ]  # fmt: skip


@pytest.mark.parametrize("members", [False, True])
def test_people_of_trips_are_counted_alike_everywhere(members: bool, tmp_path: Path) -> None:
    for name, data, zones in trip_sources([*IDS], tmp_path):
        notes = ReadNotes()
        flows = read_flows(data, zones=zones, notes=notes, members=members)
        assert (flows.volume.tolist(), flows.people.tolist(), flows.total_people) == ([8], [4], 4), name
        assert any("ids in column user_id that differ" in said for said in notes.sentences()), name
    assert len(set(read_trips(tmp_path / "trips.csv").person.tolist())) == 4  # type: ignore[union-attr]


def test_people_of_trajectories_are_counted_alike(tmp_path: Path) -> None:
    n = len(IDS)
    table = pa.table({"lat": [1.0] * n, "lon": [1.0] * n, "t": list(range(n)), "user_id": IDS})
    notes = ReadNotes()
    assert read_trajectories(table, notes=notes).people == 4
    assert any(
        said.startswith("ids in column user_id that differ") and said.endswith(": 2.") for said in notes.sentences()
    )
    both = table.append_column("trajectory_id", pa.array([" t1", "t1", "t1 ", "t1", "x", "x", "X", "1.0"]))
    model = read_trajectories(both)
    assert (model.people, len(model)) == (4, 4)
    alone = both.drop_columns(["user_id"])
    assert read_trajectories(alone).people == 4


def test_no_id_is_no_person(tmp_path: Path) -> None:
    ids = ["ann", "", "bob", "  ", "\u00a0", None, "NaN"]
    for name, data, zones in trip_sources([*ids], tmp_path):
        with pytest.raises(InputError, match=r"5 rows \(rows 2, 4, 5, 6 and 7\) have no user in column user_id"):
            read_flows(data, zones=zones)
        notes = ReadNotes()
        flows = read_flows(data, zones=zones, drop_invalid=True, notes=notes)
        assert (flows.people.tolist(), flows.total_people) == ([2], 2), name
        assert notes.dropped == {"have no user in column user_id": 5}
    points = pa.table({"lat": [1.0] * 7, "lon": [1.0] * 7, "t": list(range(7)), "user_id": ids})
    with pytest.raises(InputError, match=r"5 rows \(rows 2, 4, 5, 6 and 7\) have no usable value in column user_id"):
        read_trajectories(points)
    assert read_trajectories(points, drop_invalid=True).people == 2


@settings(deadline=None, max_examples=tries(25))
@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | spelled()), min_size=1, max_size=12))
def test_flows_count_the_people_of_the_twin(rows: list[tuple[str, str | None]]) -> None:
    names = [plain(user) for _, user in rows]
    table = pa.table({"origin": [o for o, _ in rows], "destination": ["a"] * len(rows), "user": [u for _, u in rows]})
    table = table.set_column(2, "user", table["user"].cast(pa.string()))
    wanted = {o: len({p for (at, _), p in zip(rows, names, strict=True) if at == o and p is not None}) for o, _ in rows}
    if all(p is None for p in names):
        with pytest.raises(InputError):
            read_flows(table, drop_invalid=True)
        return
    flows = read_flows(table, drop_invalid=True)
    found = dict(zip(flows.zones.ids[flows.origin].tolist(), flows.people.tolist(), strict=True))
    assert found == {o: n for o, n in wanted.items() if n}
    assert flows.total_people == len(set(names) - {None})
