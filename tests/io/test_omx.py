"""Open matrices: there and back, and from the hand of the reference package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from examples import tries
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError, OutputError
from crowdveil.io import omx
from crowdveil.io.flows import read_flows
from crowdveil.io.notes import ReadNotes
from crowdveil.io.omx import read_omx, write_omx
from crowdveil.io.tables import write_flows
from crowdveil.io.values import natural_key
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

unhurried = settings(deadline=None, max_examples=tries(30), suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def some_flows(draw: st.DrawFn) -> Flows:
    names = draw(st.sampled_from([["1", "2", "3"], ["a", "Ü", "07"], ["10", "9", "8"]]))
    step_s = draw(st.sampled_from([None, 3600]))
    steps = 1 if step_s is None else 4
    cells = st.tuples(st.integers(0, steps - 1), st.integers(0, 2), st.integers(0, 2))
    volume = draw(st.dictionaries(cells, st.integers(1, 2**40), min_size=1))
    key = np.array(list(volume), np.int64)
    t = key[:, 0] * 3600 + (1711846800 if step_s else 0)
    rows = (key[:, 1].astype(np.int32), key[:, 2].astype(np.int32), np.array(list(volume.values())))
    return Flows.from_rows(
        Zones.from_ids(names), t, *rows, step_s=step_s, tz=draw(st.sampled_from(["UTC", "Europe/Paris"]))
    )


@unhurried
@given(some_flows())
def test_flows_come_back(tmp_path: Path, flows: Flows) -> None:
    write_flows(flows, tmp_path / "flows.omx", overwrite=True)
    back = read_flows(tmp_path / "flows.omx")
    assert back.zones.ids.tolist() == sorted(flows.zones.ids.tolist(), key=natural_key)
    assert back.t.tolist() == flows.t.tolist()
    rows = [
        sorted(zip(f.step.tolist(), f.zones.ids[f.origin], f.zones.ids[f.destination], f.volume.tolist(), strict=True))
        for f in (back, flows)
    ]
    assert rows[0] == rows[1]


def test_what_the_reference_package_writes_is_read(tmp_path: Path) -> None:
    openmatrix = pytest.importorskip("openmatrix")
    matrix = np.array([[0.0, 5.0, np.nan], [7.0, 0.0, 1.0], [0.0, 2.0, 0.0]])
    file = openmatrix.open_file(str(tmp_path / "ref.omx"), "w")
    file["AM"] = matrix
    file["PM"] = matrix * 2
    file.create_mapping("taz", [30, 10, 20])
    file.close()
    flows = read_omx(f"{tmp_path / 'ref.omx'}#PM")
    assert flows.zones.ids.tolist() == ["10", "20", "30"]
    assert list(zip(flows.origin, flows.destination, flows.volume, strict=True)) == [
        (0, 1, 2),
        (0, 2, 14),
        (1, 0, 4),
        (2, 0, 10),
    ]
    with pytest.raises(
        InputError,
        match=r"names of 2 matrices are not times. Choose one, or several as successive periods",
    ):
        read_omx(tmp_path / "ref.omx")
    known = Zones.from_ids(["10", "20", "30", "40"])
    placed = read_omx(f"{tmp_path / 'ref.omx'}#AM", zones=known, lookup="taz")
    assert placed.zones is known
    assert list(zip(placed.origin, placed.destination, placed.volume, strict=True)) == [
        (0, 1, 1),
        (0, 2, 7),
        (1, 0, 2),
        (2, 0, 5),
    ]


def test_the_reference_package_reads_what_is_written(tmp_path: Path) -> None:
    openmatrix = pytest.importorskip("openmatrix")
    flows = Flows.from_rows(
        Zones.from_ids(["4", "5"]), np.array([0, 0, 3600]), np.array([0, 1, 1], np.int32), np.array([1, 0, 1], np.int32),
        np.array([3, 4, 5]), step_s=3600,
    )  # fmt: skip
    write_omx(flows, tmp_path / "ours.omx")
    with openmatrix.open_file(str(tmp_path / "ours.omx")) as file:
        names = sorted(file.list_matrices())
        assert [np.array(file[n]).tolist() for n in names] == [[[0, 3], [4, 0]], [[0, 0], [0, 5]]]
        assert file.mapping("zone_id") == {4: 0, 5: 1}
        assert tuple(file.shape()) == (2, 2)


def made(path: Path, matrices: dict[str, Any], lookup: Any = None) -> Path:
    with h5py.File(path, "w") as file:
        for name, values in matrices.items():
            file.create_dataset(f"data/{name}", data=values)
        if lookup is not None:
            file.create_dataset("lookup/zone_id", data=lookup)
    return path


@pytest.mark.parametrize(
    ("values", "lookup", "says"),
    [
        ([[-1.0]], None, "1 cells of matrix m are below zero"),
        ([[np.inf]], None, "1 cells of matrix m are infinite"),
        ([[1e30]], None, "too large"),
        ([[0.0]], None, "all cells are zero or missing"),
        ([[np.nan]], None, "all cells are zero or missing"),
        ([[1.0, 2.0]], None, "not square"),
        ([[1.0]], [1, 2], "lookup has 2 zones, but the matrices have 1 rows"),
        ([[1.0, 2.0], [3.0, 4.0]], [1, 1], "the lookup zone_id repeats 1 id"),
        ([[b"x"]], None, "broken"),
        (5.0, None, "broken"),
    ],
)
def test_bad_matrices_are_refused(values: Any, lookup: Any, says: str, tmp_path: Path) -> None:
    for zones in (None, Zones.from_ids(["1", "2"])) if lookup == [1, 1] else (None,):
        with pytest.raises(InputError, match=says):
            read_omx(made(tmp_path / "bad.omx", {"m": values}, lookup), zones=zones)


def test_files_that_are_no_matrices_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_omx(tmp_path / "nowhere.omx")
    with pytest.raises(InputError, match="no matrices"):
        read_omx(made(tmp_path / "empty.omx", {}))
    (tmp_path / "text.omx").write_text("no HDF5")
    with pytest.raises(InputError, match="broken"):
        read_omx(tmp_path / "text.omx")
    with h5py.File(tmp_path / "odd.omx", "w") as file:
        file.create_dataset("data", data=[1.0])
    with pytest.raises(InputError):
        read_omx(tmp_path / "odd.omx")
    good = made(tmp_path / "good.omx", {"m": [[1.0]]}, [5])
    for wrong, says in (
        (f"{good}#n", "got n. Choose from m, as in good.omx#m"),
        (f"{good}#m,m", "each once, got m, m"),
    ):
        with pytest.raises(InputError, match=says):
            read_omx(wrong)
    with pytest.raises(InputError, match="no lookup x; it has zone_id"):
        read_omx(good, lookup="x")
    with pytest.raises(InputError, match="1 zone of the lookup is not among the zones"):
        read_omx(good, zones=Zones.from_ids(["6"]))


def test_named_matrices_are_successive_periods(tmp_path: Path) -> None:
    file = made(tmp_path / "day.omx", {"AM": [[1.0]], "MD": [[2.0]], "PM": [[3.0]]}, [5])
    notes = ReadNotes()
    flows = read_flows(f"{file}#PM,AM", notes=notes)
    assert flows.volume.tolist() == [3, 1] and flows.t.tolist() == [0, 86400] and flows.step_s == 86400
    assert any("PM is 1970-01-01T00:00:00+00:00, AM is 1970-01-02" in note for note in notes.messages)
    assert read_flows(f"{file}#MD").step_s is None


def test_fractions_are_rounded_and_what_is_left_is_carried_over(tmp_path: Path) -> None:
    file, notes = (
        made(tmp_path / "f.omx", {"m": np.array([[0.4, 0.4, 0.4], [2.5, 0, 0.5], [0.2, 0.2, 1]])}),
        ReadNotes(),
    )
    flows = read_omx(file, notes=notes)
    rows = zip(flows.origin.tolist(), flows.destination.tolist(), flows.volume.tolist(), strict=True)
    assert list(rows) == [(0, 1, 1), (1, 0, 3), (2, 1, 1), (2, 2, 1)]
    assert any("cells are fractions" in note for note in notes.messages)


def test_numbers_of_zones_are_not_joined_to_ids(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected a lookup with the ids of the zones, got none"):
        read_omx(made(tmp_path / "m.omx", {"m": np.eye(3)}), zones=Zones.from_ids(["1", "2", "3"]))


def test_a_file_without_lookup_numbers_its_zones(tmp_path: Path) -> None:
    assert read_omx(made(tmp_path / "m.omx", {"m": np.eye(3)})).zones.ids.tolist() == ["1", "2", "3"]


def test_a_matrix_that_is_too_large_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(omx, "MAX_CELLS", 3)
    flows = Flows.from_rows(
        Zones.from_ids(["a", "b"]),
        np.zeros(1, np.int64),
        np.zeros(1, np.int32),
        np.zeros(1, np.int32),
        np.ones(1, np.int64),
    )
    with pytest.raises(OutputError, match="too large"):
        write_flows(flows, tmp_path / "flows.omx")
    assert not list(tmp_path.iterdir())
