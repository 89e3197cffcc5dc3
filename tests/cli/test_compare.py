"""`crowdveil compare` and `crowdveil sweep`, from files to tables and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pytest

ZONES = "id,lon,lat\n1,2.0,48.0\n2,2.1,48.0\n3,2.2,48.1\n"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Flows of three hours between three zones."""
    rows = [
        f"{o},{d},2026-03-02T0{h}:00:00,{3 * o + 5 * d + h}" for h in (7, 8, 9) for o in (1, 2, 3) for d in (1, 2, 3)
    ]
    (tmp_path / "flows.csv").write_text("origin,destination,time,volume\n" + "\n".join(rows) + "\n")
    (tmp_path / "zones.csv").write_text(ZONES)
    return tmp_path


def test_compare_prints_and_writes(command: Any, made: Path) -> None:
    options = ("--zones", made / "zones.csv", "--methods", "joint, suppression,oigh", "-o", made / "out", "--k", "20")
    ran = command("compare", made / "flows.csv", *options)
    assert ran.code == 0, ran.err
    head, *rows = ran.out.splitlines()
    assert head.split() == ["method", "Ḡ", "E", "D", "S", "seconds"]
    assert [row.split()[0] for row in rows[:3]] == ["joint", "suppression", "oigh"]
    assert "Nothing was published" in ran.out and "3 matrices" in ran.out
    names = ["CONFIDENTIAL.txt", "coarseness-and-loss.png", "compare.csv", "ratios.png", "summary.csv"]
    assert sorted(path.name for path in (made / "out").iterdir()) == names
    assert pacsv.read_csv(made / "out" / "compare.csv").num_rows == 3 * 3 * 5
    assert pacsv.read_csv(made / "out" / "summary.csv")["method"].to_pylist() == ["joint", "suppression", "oigh"]
    assert "--overwrite" in command("compare", made / "flows.csv", *options).sentence
    assert command("compare", made / "flows.csv", *options, "--overwrite", "--sample", "1").code == 0
    assert pacsv.read_csv(made / "out" / "compare.csv").num_rows == 3 * 5


def test_several_k_side_by_side(command: Any, made: Path) -> None:
    options = ("--zones", made / "zones.csv", "--methods", "joint,oigh:k=7,laplace", "--k", "20,10,20")
    ran = command("compare", made / "flows.csv", *options, "-o", made / "out")
    assert ran.code == 0, ran.err
    labels = [row.split()[0] for row in ran.out.splitlines()[1:5]]
    assert labels == ["joint:k=20", "joint:k=10", "oigh:k=7", "laplace"]
    pictures = sorted(path.name for path in (made / "out").glob("*.png"))
    assert pictures == ["coarseness-and-loss.png", "error-by-k.png", "ratios.png"]
    alone = command("compare", made / "flows.csv", "--zones", made / "zones.csv", "--methods", "joint", "--k", "10")
    assert alone.out.splitlines()[1].split()[1:5] == ran.out.splitlines()[2].split()[1:5]


def test_sweep_prints_and_writes(command: Any, made: Path) -> None:
    arguments = (
        "sweep",
        "joint",
        made / "flows.csv",
        "--zones",
        made / "zones.csv",
        "--k",
        "10,20",
        "--suppress",
        "0,30%",
    )
    ran = command(*arguments, "-o", made / "out")
    assert ran.code == 0, ran.err
    head, *rows = ran.out.splitlines()
    assert head.split() == ["k", "suppress", "Ḡ", "E", "D", "S", "seconds"]
    assert [row.split()[:2] for row in rows[:4]] == [["10", "0%"], ["20", "0%"], ["10", "30%"], ["20", "30%"]]
    assert sum(line.startswith("Take k = ") for line in rows) == 1
    assert sorted(path.name for path in (made / "out").iterdir()) == [
        "CONFIDENTIAL.txt",
        "sweep.csv",
        "sweep.png",
        "time.png",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "flows.csv", "--methods", "no-such"), "no method no-such"),
        (("compare", "flows.csv", "--methods", ","), "at least one"),
        (("compare", "flows.csv", "--methods", "simple-generalization"), "wanted the points of trajectories"),
        (("compare", "flows.csv", "--methods", "joint:a=1"), "no such parameter"),
        (("compare", "flows.csv", "--methods", "joint", "--k", "9999", "--zones", "zones.csv"), "smaller k"),
        (("compare", "flows.csv", "--suppress", "x"), "suppress: wanted a share"),
        (("compare", "flows.csv", "--suppress", "10"), "10% or 0.1 (a number of trips is given with --suppress-trips"),
        (("compare", "flows.csv", "--suppress", "10%", "--suppress-trips", "10"), "got both"),
        (("compare", "flows.csv", "--k", "5,10"), "name some with --methods"),
        (("compare", "flows.csv", "--methods", "joint", "--k", "5,x"), "k: wanted"),
        (("compare", "flows.csv", "--methods", "joint", "--k", ","), "k: wanted a number"),
        (("sweep", "joint", "flows.csv", "--k", ","), "k: wanted values"),
        (("sweep", "joint", "flows.csv", "--suppress", ""), "suppress: wanted values"),
        (("sweep", "no-such", "flows.csv"), "no method no-such"),
        (("sweep", "joint", "flows.csv", "--k", "5,9999", "--zones", "zones.csv"), "smaller k"),
    ],
)
def test_what_is_wrong_is_reported_in_one_sentence(
    command: Any, made: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(made)
    ran = command(*arguments)
    assert ran.code == 2 and says in ran.sentence and ran.out == ""
