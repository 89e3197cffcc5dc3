"""`crowdveil measure` on trajectories, from files to numbers."""

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
from crowdveil.errors import InputError, ParameterError

PEER = {
    "original_dataset": "cabs.csv",
    "anonymized_dataset": "anonymized.csv",
    "output_folder": "output/",
    "main_output_file": "measures.json",
    "measures": [
        {"name": "ScikitMeasures", "params": {"sort": True, "tesselation_meters": 250}},
        {"name": "TrajectoriesRemoved", "params": {}},
        {
            "name": "Rsme",
            "params": {"trajectory_distance": {"name": "Martinez2021", "params": {"p_lambda": 0.0054}}},
        },
        {"name": "PropensityScore", "params": {"tiles_size": 500, "time_interval": None, "seed": 7}},
        {
            "name": "RecordLinkage",
            "params": {
                "percen_window_size": None,
                "trajectory_distance": {"name": "Martinez2021", "params": {"p_lambda": 0.0054}},
            },
        },
    ],
}


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trajectories, a release of them with its pairing, and a plain file with two thirds of them under their own ids."""
    folder = tmp_path_factory.mktemp("once")
    lines = ["lat,lon,timestamp,trajectory_id,user_id"]
    for i in range(30):
        for e in range(2 + i % 5):
            lat, lon = 48 + (i % 6) / 200 + e / 900, 2 + (i // 6) / 200 + e * (i % 3) / 900
            lines.append(f"{lat:.5f},{lon:.5f},2026/03/02 08:{(i + 3 * e) % 60:02d}:00,{100 + i},{i // 2}")
    (folder / "cabs.csv").write_text("\n".join(lines) + "\n")
    kept = [line for line in lines if line == lines[0] or int(line.split(",")[3]) % 3]
    (folder / "anonymized.csv").write_text("\n".join(kept) + "\n")
    options = {"time_weight": 0.5, "pairing": folder / "kept.csv", "attack": False, "report": False}
    crowdveil.anonymize(folder / "cabs.csv", folder / "out", method="microaggregation", k=3, **options)
    return folder


@pytest.fixture
def made(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the data and its release, which a test may change, as the current folder."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(once, tmp_path, dirs_exist_ok=True)


@pytest.mark.usefixtures("few_queries")
def test_a_line_for_each_measure_and_part(command: Any, made: Path) -> None:
    ran = command("measure", "cabs.csv", "out", "--pairing", "kept.csv", "-m", "all")
    assert ran.code == 0 and "left out" not in ran.err and "individuals are trajectories" in ran.err
    lines = ran.out.splitlines()
    assert lines[0].split() == ["measure", "value"] and len(lines) == 1 + 7 + 5 * 4 + 2 * 5
    assert "the weight of time" in ran.err


def test_json_table_picture_and_python_say_the_same(command: Any, made: Path) -> None:
    pytest.importorskip("matplotlib")
    arguments = ("measure", "cabs.csv", "out", "--pairing", "kept.csv", "-m", "rmse:time_weight=0.5,RL,ScikitMeasures")
    ran = command(*arguments, "--json", "-o", "lost.json", "--plot", "lost.png")
    content = json.loads(ran.out)
    assert json.loads(Path("lost.json").read_text()) == content
    assert Path("lost.png").read_bytes().startswith(b"\x89PNG")
    assert command(*arguments, "-o", "lost.csv").code == 0 and command(*arguments, "-o", "lost.parquet").code == 0
    rows = pacsv.read_csv("lost.csv").to_pylist()
    same = [row | {"part": row["part"] or ""} for row in pq.read_table("lost.parquet").to_pylist()]
    assert rows == same and len(rows) == 2 + 5 * 4
    found = crowdveil.measure("cabs.csv", "out", ["RMSE:time_weight=0.5", "RecordLinkage"], pairing="kept.csv")
    value = content["measures"]["rmse:time_weight=0.5"]["value"]
    assert value == pytest.approx(rows[0]["value"]) == pytest.approx(float(found["rmse"].pooled))
    assert content["measures"]["record-linkage"]["value"] == float(found["RL"].pooled) == float(found["RL"].mean)
    assert content["measures"]["visits-per-location"]["parts"] == ["original", "released", "change", "distance"]
    ran = command(*arguments, "-o", "lost.csv")
    assert ran.code == 2 and "exists" in ran.sentence


def test_in_memory_it_is_the_same_and_needs_no_pairing(made: Path) -> None:
    result = crowdveil.anonymize("cabs.csv", "again", method="microaggregation", k=3, time_weight=0.5)
    data = crowdveil.read_trajectories("cabs.csv")
    here = crowdveil.measure(data, result.release, ["rmse", "RL", "U"])
    there = crowdveil.measure("cabs.csv", "out", ["rmse", "RL", "U"], pairing="kept.csv")
    assert [float(s.pooled) for s in here.scores] == pytest.approx([float(s.pooled) for s in there.scores])
    kept = pacsv.read_csv("kept.csv")
    pacsv.write_csv(
        kept.set_column(1, kept.column_names[1], kept[1].take(np.roll(np.arange(len(kept)), 1))), "other.csv"
    )
    others = [crowdveil.measure(data, release, ["rmse"], pairing="other.csv") for release in (result.release, "out")]
    assert others[0]["rmse"].pooled == others[1]["rmse"].pooled > here["rmse"].pooled  # a given pairing is used


def test_the_files_of_the_peer_work_with_its_ids_if_asked(command: Any, made: Path) -> None:
    Path("measures.json").write_text(json.dumps(PEER))
    ran = command("measure", "-f", "measures.json")
    assert ran.code == 0 and "--paired-by-id if others published" in ran.err and "not measured: rmse" in ran.err
    shutil.rmtree("output")
    ran = command("measure", "-f", "measures.json", "--paired-by-id")
    assert ran.code == 0 and "by equal ids, as requested" in ran.err
    assert "by equal ids, as requested" in json.loads(Path("output/measures.json").read_text())["notes"][0]
    Path("measures.json").write_text(json.dumps({"Paired_by_ID": True, **PEER}))
    content = json.loads(Path("output/measures.json").read_text())["measures"]
    assert content["rmse:distance=spatiotemporal:time_weight=0.0054"]["value"] == 0
    assert content["trajectories-removed"]["value"] == pytest.approx(1 / 3)
    # Every one of the twenty is found, of thirty.
    assert content["record-linkage:distance=spatiotemporal:time_weight=0.0054"]["value"] == pytest.approx(100 * 20 / 30)
    assert content["propensity-score:tile_m=500:seed=7"]["parameters"]["seed"] == 7
    assert (
        sum(name.partition(":")[0].endswith(("entropy", "location", "distance", "displacement")) for name in content)
        == 5
    )
    assert "exists" in command("measure", "-f", "measures.json").sentence
    assert command("measure", "-f", "measures.json", "--overwrite").code == 0
    assert command("measure", "-f", "measures.json", "-o", "elsewhere.csv").code == 0


def test_a_file_of_measures_that_is_wrong(command: Any, made: Path) -> None:
    for changed, sentence in (
        ({"measures": []}, "Expected measures"),
        ({"measures": ["Rsme"]}, "list of objects"),
        ({"measures": [{"name": "Rsme", "params": {"tile": 3}}]}, "tile: there is no such parameter"),
        ({"measures": [{"name": "Rsme", "params": 3}]}, "params of Rsme"),
        ({"measures": [{"name": "Nothing"}]}, "no measure Nothing"),
        ({"measures": [{"name": "Rsme", "params": {"trajectory_distance": {"name": "X"}}}]}, "no distance X"),
        ({"main_output_file": "../x.json"}, "plain name"),
        ({"output_folder": 3}, "must be text"),
        ({"original_dataset": None}, "Expected original_dataset"),
        ({"more": 1}, "unknown key more"),
        ({"paired_by_id": "yes"}, "true or false"),
        ({"Measures": []}, "differ only in case"),
        ({"anonymized_dataset": "none.csv"}, "no such file or folder"),
    ):
        Path("wrong.json").write_text(json.dumps(PEER | changed))
        assert sentence in command("measure", "-f", "wrong.json").sentence, changed
    assert not Path("output").exists()
    assert "got both" in command("measure", "cabs.csv", "-f", "wrong.json").sentence


RUN = {
    "method": "SimpleGeneralization",
    "input_file": "cabs.csv",
    "output_folder": "made",
    "main_output_file": "x.csv",
    "pairing": "kept-simple.csv",
    "params": {"tile_size": 200},
}
MEASURES = {
    "original_dataset": "cabs.csv",
    "anonymized_dataset": "made/x/x.csv",
    "measures": [{"name": "Rsme"}, {"name": "RecordLinkage"}],
}


@pytest.fixture
def small_ids(made: Path) -> None:
    """Let the ids of the original be 1 to 30 in reverse order of the published ones, so that they look alike."""
    lines = Path("cabs.csv").read_text().splitlines()
    rows = [line.split(",") for line in lines[1:]]
    text = [",".join([*row[:3], str(130 - int(row[3])), row[4]]) for row in rows]
    Path("cabs.csv").write_text("\n".join([lines[0], *text]) + "\n")
    Path("run.json").write_text(json.dumps(RUN))


def test_run_files_from_anonymizing_to_measuring_give_the_numbers_of_the_kept_pairing(
    command: Any, small_ids: None
) -> None:
    assert command("anonymize", "-f", "run.json").code == 0
    result = crowdveil.anonymize("cabs.csv", "again", method="simple-generalization", tile_size_m=200)
    true = crowdveil.measure(crowdveil.read_trajectories("cabs.csv"), result.release, ["rmse", "RL"])
    Path("m.json").write_text(json.dumps(MEASURES))
    refused = command("measure", "-f", "m.json")
    assert refused.code == 2 and "the original of each trajectory is not known" in refused.sentence
    Path("m.json").write_text(json.dumps(MEASURES | {"pairing": "kept-simple.csv"}))
    content = json.loads(command("measure", "-f", "m.json", "--json").out)
    assert content["measures"]["rmse"]["value"] == pytest.approx(float(true["rmse"].pooled))
    assert content["measures"]["record-linkage"]["value"] == pytest.approx(float(true["RL"].pooled))
    assert content["notes"][0] == "trajectories are paired with their originals by the given pairing."


def test_ids_of_a_release_are_never_taken_for_original_ids(command: Any, small_ids: None) -> None:
    assert command("anonymize", "-f", "run.json").code == 0
    # The file in its folder, a copy of it without the manifest, and the folder.
    Path("copy.csv").write_bytes(Path("made/x/x.csv").read_bytes())
    assert Path("copy.csv").read_text().startswith("lat,lon,timestamp,published_id\n")
    for release in ("made/x/x.csv", "copy.csv", "made/x"):
        refused = command("measure", "cabs.csv", release, "--paired-by-id")
        assert refused.code == 2 and "are new and match no original" in refused.sentence, release
        content = json.loads(command("measure", "cabs.csv", release, "-m", "trajectories-removed", "--json").out)
        assert "not paired with their originals" in content["notes"][0], release
        assert command("measure", "cabs.csv", release, "-m", "rmse", "--pairing", "kept-simple.csv").code == 0, release
    both = command("measure", "cabs.csv", "made/x", "--paired-by-id", "--pairing", "kept-simple.csv")
    assert both.code == 2 and "Leave one out" in both.sentence
    unknown = command("measure", "cabs.csv", "anonymized.csv", "--paired-by-id")
    assert unknown.code == 2 and "not in the original" in unknown.sentence
    with pytest.raises(ParameterError, match="have no pairing"):
        _measure_flows(paired_by_id=True)


def _measure_flows(**options: Any) -> None:
    Path("flows.csv").write_text("origin,destination,volume\na,b,30\n")
    Path("zones.csv").write_text("id,lon,lat\na,2.0,48.0\nb,2.1,48.0\n")
    crowdveil.anonymize("flows.csv", "of-flows", method="suppression", zones="zones.csv", overwrite=True)
    crowdveil.measure("flows.csv", "of-flows", zones="zones.csv", **options)


@pytest.mark.usefixtures("few_queries")
def test_a_plain_file_with_other_ids_has_no_pairing_until_it_is_given(command: Any, made: Path) -> None:
    text = Path("anonymized.csv").read_text()
    ids = sorted({line.split(",")[3] for line in text.splitlines()[1:]})
    for old in ids:
        text = text.replace(f",{old},", f",new-{old},")
    Path("renamed.csv").write_text(text)
    assert "not known" in [*command("measure", "cabs.csv", "renamed.csv", "-m", "rmse").err.splitlines()][-1]
    ran = command("measure", "cabs.csv", "renamed.csv", "-m", "all")
    assert ran.code == 0 and "not measured: rmse, rmse-document, normalized-rmse, record-linkage: " in ran.err
    Path("pairs.csv").write_text("published_id,trajectory_id\n" + "".join(f"new-{old},{old}\n" for old in ids))
    found = crowdveil.measure("cabs.csv", "renamed.csv", ["rmse", "RL"], pairing="pairs.csv")
    assert found["rmse"].pooled == 0 and found["RL"].pooled == pytest.approx(100 * 20 / 30)


def test_what_is_wrong_is_reported_in_one_sentence(command: Any, made: Path) -> None:
    assert "keep it with --pairing" in command("measure", "cabs.csv", "out", "-m", "rmse").sentence
    assert "measure of trajectories" in command("measure", "cabs.csv", "out", "-m", "E").sentence
    assert "Expected release, got none" in command("measure", "cabs.csv").sentence
    assert "ends in .png" in command("measure", "cabs.csv", "out", "--plot", "x.pdf").sentence
    with pytest.raises(ParameterError, match="have no pairing"):
        _measure_flows(pairing="kept.csv")
    with pytest.raises(ParameterError, match="measure of flows"):
        crowdveil.measure("flows.csv", "of-flows", ["rmse"], zones="zones.csv")
    Path("twice.csv").write_text("published_id,trajectory_id\n1,100\n1,101\n")
    with pytest.raises(InputError, match="more than once"):
        crowdveil.measure("cabs.csv", "out", ["rmse"], pairing="twice.csv")


@pytest.mark.usefixtures("few_queries")
def test_progress_is_reported(made: Path) -> None:
    done, stages = [], []
    crowdveil.measure(
        "cabs.csv", "out", "all", pairing="kept.csv", progress=lambda a, b: done.append((a, b)), stage=stages.append
    )
    assert stages[0] == "reading" and {"sid", "rmse", "record-linkage"} <= set(stages)
    assert all(0 <= a <= b for a, b in done) and len(done) > 5


def test_flows_are_drawn_too(command: Any, made: Path) -> None:
    pytest.importorskip("matplotlib")
    Path("flows.csv").write_text("origin,destination,volume\na,b,30\na,a,3\n")
    Path("zones.csv").write_text("id,lon,lat\na,2.0,48.0\nb,2.1,48.0\n")
    crowdveil.anonymize("flows.csv", "of-flows", method="suppression", zones="zones.csv")
    assert command("measure", "flows.csv", "of-flows", "--zones", "zones.csv", "--plot", "flows.png").code == 0
    assert Path("flows.png").read_bytes().startswith(b"\x89PNG")


def test_a_measure_without_a_pairing_does_not_stop_the_others(command: Any, made: Path) -> None:
    ran = command("measure", "cabs.csv", "out", "-m", "rmse,sid:queries=1000")
    assert ran.code == 0 and "not measured: rmse: " in ran.err and "keep it with --pairing" in ran.err
    found = crowdveil.measure("cabs.csv", "out", ["rmse", "sid:queries=1000"])
    assert list(found.left_out) == ["rmse"] and found["sid"].pooled is not None


def test_verification_counts_people_with_the_pairing(command: Any, made: Path) -> None:
    ran = command("verify", "out", "--original", "cabs.csv")
    assert ran.code == 0 and "not checked  trajectory-k-anonymity" in ran.out
    ran = command("verify", "out", "--original", "cabs.csv", "--pairing", "kept.csv")
    assert ran.code == 0 and "holds        trajectory-k-anonymity" in ran.out
    assert command("verify", "out", "--pairing", "kept.csv").code == 2
