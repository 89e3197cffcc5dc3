"""`crowdveil measure` and `crowdveil.measure`, from files to numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil.errors import InputError
from crowdveil.io.manifest import read_manifest
from crowdveil.io.release_reader import load_flow_release
from crowdveil.io.written_release import read_release

ZONES = "id,lon,lat\n1,2.0,48.0\n2,2.1,48.0\n3,2.2,48.1\n"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trips of two hours between three zones, and a release that suppresses those of few people."""
    folder = tmp_path_factory.mktemp("once")
    groups = ((1, 2, 12, 8), (2, 3, 11, 8), (1, 1, 2, 8), (3, 1, 15, 9), (3, 2, 5, 9), (2, 2, 3, 11))
    lines = [f"{o},{d},2026-03-02T{h:02d}:10:00,u{i}" for o, d, n, h in groups for i in range(n)]
    (folder / "trips.csv").write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    (folder / "zones.csv").write_text(ZONES)
    crowdveil.anonymize(
        folder / "trips.csv",
        folder / "out",
        method="suppression",
        zones=folder / "zones.csv",
        tz="Europe/Paris",
        k=10,
        format="parquet",
    )
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path) -> Path:
    """Return a copy of the data and its release, which a test may change."""
    return shutil.copytree(once, tmp_path, dirs_exist_ok=True)


def test_prints_a_line_for_each_measure(command: Any, made: Path) -> None:
    line = ("measure", made / "trips.csv", made / "out", "--zones", made / "zones.csv")
    few = command(*line)
    assert few.code == 0 and len(few.out.splitlines()) == 1 + 5, "five measures show most"
    ran = command(*line, "-m", "all")
    assert ran.code == 0 and "hash" not in ran.err
    lines = {line[:40].strip(): line.split()[-2:] for line in ran.out.splitlines()}
    assert lines["↓ reconstruction error (E)"] == lines["↓ share of trips suppressed (S)"]
    assert "–" in next(line for line in ran.out.splitlines() if "MAO" in line)


def test_rows_that_overlap_are_measured_and_it_is_said(command: Any, made: Path) -> None:
    # The box around the small flows has the large one in it.
    volumes = {(1, 1): 6, (3, 3): 6, (2, 2): 20}
    lines = [f"{o},{d}" for (o, d), n in volumes.items() for _ in range(n)]
    (made / "more.csv").write_text("origin,destination\n" + "\n".join(lines) + "\n")
    diagonal = made / "diagonal.csv"
    diagonal.write_text("id,lon,lat\n1,2.0,48.0\n2,2.1,48.05\n3,2.2,48.1\n")
    crowdveil.anonymize(made / "more.csv", made / "glove", method="glove", zones=diagonal, k=10, suppress=0)
    ran = command("measure", made / "more.csv", made / "glove", "--zones", diagonal, "--json", "-m", "all")
    assert ran.code == 0 and "overlap" in ran.err
    reported = {name: found["mean"] for name, found in json.loads(ran.out)["measures"].items()}
    a, b = 6 - 12 / 9, 12 / 9  # what is missing from, and what is too much in, each of their nine cells
    assert reported["reconstruction-error"] == pytest.approx((2 * a + 7 * b) / 32) and reported["suppressed"] == 0
    product, squares = 12 * b + 20 * (20 + b), (20 + b) ** 2 + 8 * b**2
    assert reported["cosine-distance"] == pytest.approx(1 - product / (472 * squares) ** 0.5)
    quiet = command("measure", made / "trips.csv", made / "out", "--zones", made / "zones.csv", "--measures", "E")
    assert "overlap" not in quiet.err


def test_json_and_table_have_every_step(command: Any, made: Path) -> None:
    arguments = ("measure", made / "trips.csv", made / "out", "--zones", made / "zones.csv", "--measures", "S, E,D")
    reported = json.loads(command(*arguments, "--json", "-o", made / "lost.csv").out)
    assert reported["time_steps"] == [
        "2026-03-02T08:00:00+01:00",
        "2026-03-02T09:00:00+01:00",
        "2026-03-02T11:00:00+01:00",
    ]
    suppressed = [2 / 25, 5 / 20, 1.0]
    assert list(reported["measures"]) == ["suppressed", "reconstruction-error", "distribution-distance"]
    assert reported["measures"]["suppressed"]["by_step"] == pytest.approx(suppressed)
    assert reported["measures"]["suppressed"]["pooled"] == pytest.approx(10 / 48)
    assert reported["measures"]["distribution-distance"]["by_step"][2] is None  # nothing was published in that hour
    table = pacsv.read_csv(made / "lost.csv").to_pylist()
    assert [row["over"] for row in table[:5]] == ["step"] * 3 + ["mean", "pooled"]
    assert [row["value"] for row in table[:3]] == pytest.approx(suppressed)
    assert command(*arguments, "-o", made / "lost.csv").code == 2  # it is there already
    assert command(*arguments, "-o", made / "lost.parquet").code == 0
    assert pq.read_table(made / "lost.parquet").num_rows == len(table)


def test_python_gives_the_same(made: Path) -> None:
    found = crowdveil.measure(made / "trips.csv", made / "out", zones=made / "zones.csv")
    assert found["E"].by_step == pytest.approx(found["suppressed"].by_step)
    flows = crowdveil.read_flows(made / "trips.csv", zones=made / "zones.csv", tz="Europe/Paris")
    manifest = read_manifest(made / "out")
    written = read_release(made / "out", manifest.file_names)
    again = crowdveil.measure(flows, load_flow_release(written, flows), ["E"])
    assert again["E"].mean == found["E"].mean
    with pytest.raises(KeyError):
        _ = again["D"]


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
@pytest.mark.parametrize("step", ["1h", "all"])
def test_a_release_read_back_is_the_one_that_was_written(made: Path, table_format: Any, step: str) -> None:
    options = {"zones": made / "zones.csv", "step": step}
    result = crowdveil.anonymize(
        made / "trips.csv", made / "b", method="suppression", format=table_format, **options, k=4
    )
    flows = crowdveil.read_flows(made / "trips.csv", **options)
    files = {role: f["name"] for role, f in result.manifest["files"].items()}
    back = load_flow_release(read_release(made / "b", files), flows)
    wanted = result.release
    for column in ("volume", "people", "state"):
        assert getattr(back, column).tolist() == getattr(wanted, column).tolist()
    for side in ("origin", "destination"):
        names = [r.areas.names[getattr(r, side)].tolist() for r in (back, wanted)]
        assert names[0] == names[1]
    known = (np.diff(wanted.offsets) > 0) | (wanted.suppressed > 0)  # a step of which nothing is known is not listed
    assert back.t.tolist() == wanted.t[known].tolist() and back.suppressed.tolist() == wanted.suppressed[known].tolist()


def test_what_is_wrong_is_reported_in_one_sentence(command: Any, made: Path, tmp_path: Path) -> None:
    trips, out, zones = made / "trips.csv", made / "out", made / "zones.csv"
    assert "made with a file of zones" in command("measure", trips, out).sentence
    assert "no measure X" in command("measure", trips, out, "--zones", zones, "--measures", "X").sentence
    assert "no manifest.json" in command("measure", trips, tmp_path, "--zones", zones).sentence
    assert "--step" in command("measure", trips, out, "--zones", zones, "--step", "all").sentence
    (made / "other.csv").write_text(ZONES + "4,2.3,48.1\n")
    assert "not the file" in command("measure", trips, out, "--zones", made / "other.csv").sentence


def test_tiles_that_the_original_lacks_are_reported(made: Path) -> None:
    manifest = read_manifest(made / "out")
    written = read_release(made / "out", manifest.file_names)
    (made / "other.csv").write_text(ZONES.replace("3,", "4,"))
    flows = crowdveil.read_flows(made / "trips.csv", zones=made / "other.csv", drop_invalid=True)
    with pytest.raises(InputError, match="1 tile of its areas is not among the original's zones"):
        load_flow_release(written, flows)


def test_another_original_is_refused(command: Any, made: Path) -> None:
    (made / "more.csv").write_text((made / "trips.csv").read_text() + "1,2,2026-03-02T08:15:00,u1\n")
    line = ("measure", made / "more.csv", made / "out", "--zones", made / "zones.csv")
    assert "made from other data" in command(*line).err


def test_a_release_that_was_changed_is_not_measured(command: Any, made: Path) -> None:
    table = pq.read_table(made / "out" / "flows.parquet")
    changed = table.set_column(table.column_names.index("volume"), "volume", [[v.as_py() * 2 for v in table["volume"]]])
    pq.write_table(changed, made / "out" / "flows.parquet")
    ran = command("measure", made / "trips.csv", made / "out", "--zones", made / "zones.csv")
    assert ran.code == 1 and "changed since" in ran.err and ran.out == ""
