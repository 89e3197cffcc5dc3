"""The private file that pairs published trajectories with original ones."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import InputError, OutputError, ParameterError
from crowdveil.io.pairing import pairing_by_ids, read_pairing, write_pairing
from crowdveil.io.release_reader import load_trajectory_release
from crowdveil.io.trajectories import read_trajectories
from crowdveil.model.canonical import canonical
from crowdveil.model.release import TrajectoryRelease
from crowdveil.run import pipeline
from crowdveil.run.releases import open_release


def _points(folder: Path, ids: str = "t{}", users: str = "u{}", n: int = 6) -> Path:
    rows = [
        f"{48 + i / 1000 + e / 5000},{2 + i / 1000},2026-03-02T08:{e:02d}:00Z,{ids.format(i)},{users.format(i)}"
        for i in range(n)
        for e in range(3)
    ]
    file = folder / "points.csv"
    file.write_text("lat,lon,timestamp,trajectory_id,user_id\n" + "\n".join(rows) + "\n")
    return file


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("ids", ["t{}", "{}", '"one, and {}"', "007{}"])
def test_what_is_kept_is_what_came_of_what(tmp_path: Path, ending: str, ids: str) -> None:
    points, kept = _points(tmp_path, ids), tmp_path / f"private/kept.{ending}"
    result = crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=2, pairing=kept)
    data = canonical(read_trajectories(points))
    assert isinstance(result.release, TrajectoryRelease) and result.release.source is not None
    published = [str(i + 1) for i in range(len(result.release))]
    assert read_pairing(kept, data, published).tolist() == result.release.source.tolist()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    table = pacsv.read_csv(kept) if ending == "csv" else pq.read_table(kept)
    assert table.column_names == ["published_id", "trajectory_id"]
    for file in (tmp_path / "out").iterdir():
        assert b"pairing" not in file.read_bytes() and b"kept" not in file.read_bytes()


def test_the_release_is_the_same_with_and_without(tmp_path: Path) -> None:
    points = _points(tmp_path)
    for name, more in (("a", {}), ("b", {"pairing": tmp_path / "kept.csv"})):
        crowdveil.anonymize(points, tmp_path / name, method="microaggregation", k=2, seed=1, **more)
    for file in (tmp_path / "a").iterdir():
        if file.name not in ("manifest.json", "report.html"):  # they have the time of the run
            assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_ids_that_start_again_for_each_user_are_given_with_the_user(tmp_path: Path) -> None:
    points, kept = _points(tmp_path, ids="1"), tmp_path / "kept.csv"
    result = crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=2, pairing=kept)
    data = canonical(read_trajectories(points))
    assert len(data) == 6 and pacsv.read_csv(kept).column_names == ["published_id", "trajectory_id", "user_id"]
    assert isinstance(result.release, TrajectoryRelease) and result.release.source is not None
    assert read_pairing(kept, data, [str(i + 1) for i in range(6)]).tolist() == result.release.source.tolist()
    again = pairing_by_ids(data, data)
    assert again.tolist() == list(range(6))


def test_it_does_not_lie_in_the_release(tmp_path: Path) -> None:
    points = _points(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "door.csv").symlink_to(tmp_path / "out" / "kept.csv")
    for output, kept in (
        ("out", "out/kept.csv"), ("out", "out/deeper/kept.csv"), ("real", "link/kept.csv"), ("link", "real/kept.csv"),
        ("out", "door.csv"), ("out", "real/../out/kept.csv"),
    ):  # fmt: skip
        with pytest.raises(OutputError, match="must not be in the folder of a release"):
            crowdveil.anonymize(points, tmp_path / output, method="microaggregation", k=2, pairing=tmp_path / kept)
    assert not (tmp_path / "out").exists() and not any((tmp_path / "real").iterdir())
    crowdveil.anonymize(points, tmp_path / "earlier", method="microaggregation", k=2)
    with pytest.raises(OutputError, match="must not be in the folder of a release"):
        crowdveil.anonymize(
            points, tmp_path / "out", method="microaggregation", k=2, pairing=tmp_path / "earlier" / "p.csv"
        )


def test_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points, kept = _points(tmp_path), tmp_path / "deep" / "kept.csv"

    def fail(*_: Any) -> None:
        raise InputError("something went wrong.")

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "require_checked", fail)
        with pytest.raises(InputError, match="went wrong"):
            crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=2, pairing=kept)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["points.csv"]
    crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=2, pairing=kept)
    before = kept.read_bytes()
    with pytest.raises(OutputError, match="exists"):
        crowdveil.anonymize(points, tmp_path / "other", method="microaggregation", k=2, pairing=kept)
    assert kept.read_bytes() == before and not (tmp_path / "other").exists()
    crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=3, pairing=kept, overwrite=True)
    assert kept.read_bytes() != before
    with pytest.raises(OutputError, match="holds no pairing"):
        crowdveil.anonymize(points, tmp_path / "out", method="microaggregation", k=2, pairing=points, overwrite=True)
    with pytest.raises(OutputError, match="ends in"):
        crowdveil.anonymize(points, tmp_path / "new", method="microaggregation", k=2, pairing=tmp_path / "kept.txt")
    with pytest.raises(ParameterError, match="for flows"):
        crowdveil.anonymize(points, tmp_path / "new", method="suppression", pairing=tmp_path / "new.csv")
    with pytest.raises(InputError, match="has no pairing of published"):
        write_pairing(tmp_path / "x.csv", read_trajectories(points), None)


def test_run_files_may_ask_for_it_and_the_screen_says_to_keep_it_secret(tmp_path: Path, command: Any) -> None:
    points = _points(tmp_path)
    run = tmp_path / "run.toml"
    run.write_text(
        f'method = "microaggregation"\ninput = "{points}"\noutput = "{tmp_path / "out"}"\npairing = "{tmp_path / "p.csv"}"\n'
        "[parameters]\nk = 2\n"
    )
    ran = command("anonymize", "-f", run)
    assert ran.code == 0 and "Keep it secret" in ran.err and (tmp_path / "p.csv").is_file()
    ran = command(
        "anonymize", "microaggregation", points, "--k", 2, "-o", tmp_path / "b", "--pairing", tmp_path / "b.csv"
    )
    assert ran.code == 0 and "Keep it secret" in ran.err
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "p.csv").read_bytes()
    assert (
        "No such option" in command("anonymize", "joint", points, "-o", tmp_path / "c", "--pairing", "x.csv").sentence
    )


def test_one_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    data, published = read_trajectories(_points(tmp_path, n=3)), ["1", "2", "3"]
    good = {"published_id": [1, 2, 3], "trajectory_id": ["t0", "t2", "t1"]}
    assert read_pairing(_kept(tmp_path, good), data, published).tolist() == [0, 2, 1]
    twice = good | {"trajectory_id": ["t0", "t0", "t1"]}  # two pieces of one
    assert read_pairing(pa.table(twice), data, published).tolist() == [0, 0, 1]
    for changed, sentence in (
        ({"trajectory_id": ["t0", "t2", "x"]}, "1 trajectory is not in the original"),
        ({"published_id": [1, 2, 4]}, "1 trajectory is not in the release"),
        ({"published_id": [1, 2, 2]}, "1 trajectory is listed more than once as published"),
        (
            {"published_id": [1, 2], "trajectory_id": ["t0", "t1"]},
            "1 trajectory is in the release, but not in this file",
        ),
        ({"trajectory_id": ["t0", None, "t1"]}, "not in the original"),
    ):
        with pytest.raises(InputError, match=sentence) as error:
            read_pairing(_kept(tmp_path, good | changed), data, published)
        assert "t0" not in str(error.value)
    for columns in ({"published_id": [1]}, {"trajectory_id": ["t0"]}):
        with pytest.raises(InputError, match="has no column"):
            read_pairing(_kept(tmp_path, columns), data, published)
    with pytest.raises(InputError, match="no such file"):
        read_pairing(tmp_path / "none.csv", data, published)


def _kept(folder: Path, columns: dict[str, Any]) -> Path:
    file = folder / "kept.parquet"
    pq.write_table(pa.table(columns), file)
    return file


@pytest.mark.parametrize(
    ("method", "table_format"),
    [("microaggregation", "csv"), ("simple-generalization", "parquet"), ("swapmob", "parquet")],
)
def test_a_release_read_back_is_the_one_that_was_written(tmp_path: Path, method: str, table_format: Any) -> None:
    points = _points(tmp_path)
    wanted = crowdveil.anonymize(points, tmp_path / "out", method=method, format=table_format).release
    back = load_trajectory_release(open_release(tmp_path / "out")[1])
    assert isinstance(wanted, TrajectoryRelease) and back.source is None
    for column in ("lon", "lat", "t", "offsets"):
        np.testing.assert_array_equal(getattr(back, column), getattr(wanted, column))
    assert (back.person is None) == (wanted.person is None)
    if wanted.person is not None and back.person is not None:
        assert back.person.tolist() == wanted.person.tolist()
