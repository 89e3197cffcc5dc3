"""Which column means what."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from crowdveil.errors import InputError
from crowdveil.io.columns import USUAL, find_column, find_columns, need_column
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source, open_source


def source(*names: str) -> Source:
    return open_source(pa.table({name: ["1"] for name in names}))


@pytest.mark.parametrize(("role", "usual"), [(role, name) for role, names in USUAL.items() for name in names])
def test_usual_names_are_found_without_case(role: str, usual: str) -> None:
    for name in (usual, usual.upper(), usual.title()):
        notes = ReadNotes()
        assert find_column(source("zzz", name), role, None, notes) == name
        # The best name is used without a message; any other is reported.
        assert bool(notes.messages) == (name != USUAL[role][0])
        assert all(name in sentence for sentence in notes.messages)


def test_the_best_usual_name_wins_and_a_named_one_beats_it() -> None:
    both = source("x", "lon", "weird")
    assert find_column(both, "lon", None, ReadNotes()) == "lon"
    assert find_column(both, "lon", "weird", ReadNotes()) == "weird"
    assert find_column(both, "weight", None, ReadNotes()) is None
    assert find_columns(both, {"lon": "x", "lat": None}, ReadNotes()) == {"lon": "x", "lat": None}


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"no column longitud for lon=. Did you mean longitude\?$"):
        find_column(source("longitude", "b"), "lon", "longitud", ReadNotes())
    with pytest.raises(InputError, match=r"no column q for origin=; it has longitude, b\.$"):
        find_column(source("longitude", "b"), "origin_lon", "q", ReadNotes())


def test_a_column_that_must_be_there() -> None:
    assert need_column(source("lng"), "lon", None, ReadNotes()) == "lng"
    with pytest.raises(
        InputError,
        match=r"Expected a column timestamp, but it has timestmp. Name it, such as time=\"timestmp\"\.$",
    ):
        need_column(source("timestmp"), "time", None, ReadNotes())


def test_values_in_place_of_a_header_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("37.751,lemur,2008-06-08 07:00\n37.752,lynx,2008-06-08 07:01\n")
    lacks_header = open_source(tmp_path / "t.csv")
    for role, named in (("lat", None), ("user", "lemurs")):
        with pytest.raises(InputError, match="first line looks like data") as refused:
            need_column(lacks_header, role, named, ReadNotes())
        assert not any(value in str(refused.value) for value in ("37.7", "lemur,", "2008", "lynx", "mean lemur"))
