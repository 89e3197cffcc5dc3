"""The command line as a user meets it, on small files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from crowdveil.cli import demo
from crowdveil.cli.main import COMMANDS
from crowdveil.params import rows
from crowdveil.registry import METHODS, find_method


@pytest.fixture
def crowdveil(command: Any) -> Any:
    """Run the command: exit code, standard output, standard error."""

    def call(*arguments: Any) -> tuple[int, str, str]:
        ran = command(*arguments)
        return ran.code, ran.out, ran.err

    return call


@pytest.fixture
def points(tmp_path: Path) -> Path:
    path = tmp_path / "points.csv"
    lines = [
        f"{48.8 + i / 1000},{2.3 + j / 1000},2026-03-02T08:{i:02d}:00Z,{j},{j % 3},note {j}"
        for j in range(6)
        for i in range(4 + j)
    ]
    lines = lines[::-2] + lines[-2::-2]  # in no order, as files often are
    path.write_text("lat,lon,timestamp,trajectory_id,user_id,remark\n" + "\n".join(lines) + "\n")
    return path


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['crowdveil', '--help']\nfrom crowdveil.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('LOADED', sorted({m.split('.')[0] for m in sys.modules} & {'numba', 'geopandas', 'pyarrow'}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(f"  {name} " in shown for name in COMMANDS)
    assert "LOADED []" in shown


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(crowdveil: Any, name: str) -> None:
    code, shown, _ = crowdveil(name, "--help")
    assert code == 0 and ("Example:" in shown or "Examples:" in shown) and f"crowdveil {name}" in shown
    options = re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown.partition("\nOptions:\n")[2], re.MULTILINE)
    assert len(options) == len(set(options))


@pytest.mark.parametrize("name", ["joint", "fixed", "laplace", "microaggregation"])
def test_parameters_are_options_in_groups_and_the_usual_ones_come_first(crowdveil: Any, name: str) -> None:
    method = find_method(name)
    _, shown, _ = crowdveil("anonymize", name, "--help")
    assert all(row.option in shown for row in rows(method.params))
    assert ("--partition " in shown) == (name == "fixed") and ("--hierarchy " in shown) == (name == "joint")
    first = shown.split("\nOptions:\n")[1].split("\n\n")[0]
    assert ("--k N" in first) == ("k" in method.params.model_fields) and "--zones" in first and "--output" in first
    headings = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[-4:] == [*(["Method:"] if len(headings) > 4 else []), "Input:", "Output:", "Run:"][-4:]


def test_version(crowdveil: Any) -> None:
    assert crowdveil("--version")[1].startswith("crowdveil 0.")


def test_methods_lists_and_explains(crowdveil: Any) -> None:
    assert all(name in crowdveil("methods")[1] for name in METHODS)
    shown = crowdveil("methods", "suppression")[1]
    assert "Guarantee" in shown and "k = 10" in shown
    assert json.loads(crowdveil("methods", "suppression", "--schema")[1])["properties"]["k"]["minimum"] == 2


def test_anonymize_verify_and_tamper(crowdveil: Any, points: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, notes = crowdveil(
        "anonymize", "simple-generalization", points, "--tile-size-m", "200", "-o", out, "--format", "parquet"
    )
    assert code == 0 and "verified and written" in shown and "no guarantee of anonymity" in shown and notes == ""
    code, shown, _ = crowdveil("verify", out)
    assert code == 0 and shown.count("holds") == 2 and "heuristic" in shown
    findings = json.loads(crowdveil("verify", out, "--json")[1])["findings"]
    assert all(f["outcome"] == "holds" for f in findings)
    table = pq.read_table(out / "trajectories.parquet")
    pq.write_table(table.slice(1), out / "trajectories.parquet")
    code, _, err = crowdveil("verify", out)
    assert code == 1 and "changed since" in err


def test_filters_run_in_the_order_given_and_lose_no_column(crowdveil: Any, points: Path, tmp_path: Path) -> None:
    code, shown, _ = crowdveil(
        "filter", points, "--min-locations", "6", "--bbox", "2.3,48,2.3045,49", "-o", tmp_path / "a.csv"
    )
    assert code == 0
    assert shown.splitlines()[1] == "min_locations 6: removed 2 trajectories"
    assert shown.splitlines()[2] == "bbox 2.3,48,2.3045,49: removed 1 trajectory"
    code, shown, _ = crowdveil(
        "filter", points, "--bbox", "2.3,48,2.3045,49", "--min-locations", "6", "-o", tmp_path / "b.csv"
    )
    assert shown.splitlines()[1] == "bbox 2.3,48,2.3045,49: removed 1 trajectory"
    lines = points.read_text().splitlines()
    kept = [line for line in lines[1:] if line.split(",")[3] in "234"]
    assert (tmp_path / "a.csv").read_text().splitlines() == [lines[0], *kept]
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()


def test_filter_takes_the_file_of_mdl_anonymizer(crowdveil: Any, points: Path, tmp_path: Path) -> None:
    content = {
        "input_filename": str(points),
        "output_filename": str(tmp_path / "filtered.csv"),
        "methods": [{"min_locations": 5}, {"max_speed": 300}],
    }
    (tmp_path / "run.json").write_text(json.dumps(content))
    code, shown, _ = crowdveil("filter", "-f", tmp_path / "run.json")
    assert code == 0 and "min_locations 5: removed 1 trajectory" in shown and (tmp_path / "filtered.csv").exists()


def test_flows_command(crowdveil: Any, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("origin,destination\na,b\na,b\nb,a\n")
    code, shown, _ = crowdveil("flows", tmp_path / "trips.csv", "-o", tmp_path / "flows.csv")
    assert code == 0 and "2 flows, 3 trips" in shown
    assert (tmp_path / "flows.csv").read_text() == "origin,destination,volume\na,b,2\nb,a,1\n"
    for verb in ("flows", "trips"):  # refused before the input is opened
        code, _, said = crowdveil(verb, tmp_path / "none.csv", "-o", tmp_path / "flows.csv")
        assert code == 2 and "the file exists" in said


def test_hierarchy_command(crowdveil: Any, tmp_path: Path) -> None:
    (tmp_path / "zones.csv").write_text("zone_id,lon,lat\na,1,1\nb,1.1,1\nc,5,5\n")
    code, shown, _ = crowdveil("hierarchy", tmp_path / "zones.csv", "-o", tmp_path / "tree.csv")
    assert code == 0 and shown.startswith("3 tiles, 5 nodes, depth 2")
    assert (tmp_path / "tree.csv").read_text().splitlines()[0] == "node,parent,tiles,tile"
    (tmp_path / "levels.csv").write_text("tile,district\na,n\nb,n\nc,s\n")
    assert crowdveil("hierarchy", tmp_path / "zones.csv", "--hierarchy", tmp_path / "levels.csv")[0] == 0


def test_synth_commands(crowdveil: Any, tmp_path: Path) -> None:
    common = ("--tiles", 25, "--people", 50, "--days", 1)
    trips, drives, flows = (tmp_path / n for n in ("trips.parquet", "drives.parquet", "flows.csv"))
    zones = tmp_path / "zones.geojson"
    assert crowdveil("synth", "trips", 200, *common, "--zones-out", zones, "-o", trips)[0] == 0
    assert crowdveil("synth", "trajectories", 20, *common, "-o", drives)[0] == 0
    assert crowdveil("experiment", "flows", "nyc", "-o", flows)[0] == 0
    movers = tmp_path / "movers.parquet"
    assert crowdveil("experiment", "movers", 30, "--speed", 30, "--step-s", 5, "-o", movers)[0] == 0
    assert crowdveil("anonymize", "microaggregation", movers, "--k", 3, "-o", tmp_path / "out3")[0] == 0
    assert pq.read_metadata(trips).num_rows == 200
    out = tmp_path / "out"
    assert crowdveil("anonymize", "suppression", trips, "--zones", zones, "--step", "all", "--k", 2, "-o", out)[0] == 0
    assert crowdveil("anonymize", "simple-generalization", drives, "-o", tmp_path / "out2")[0] == 0
    for command in (
        ("synth", "trips", 200, *common),
        ("experiment", "flows", "nyc"),
    ):  # nothing is written unless all can be
        code, _, said = crowdveil(*command, "--zones-out", zones, "-o", tmp_path / "more.parquet")
        assert code == 2 and "zones.geojson: the file exists" in said and not (tmp_path / "more.parquet").exists()
    code, _, said = crowdveil("experiment", "flows", "nyc", "--seed", -1, "-o", tmp_path / "more.parquet")
    assert code == 2 and "x>=0" in said


def test_a_run_file_with_a_source_needs_a_server(crowdveil: Any, points: Path, tmp_path: Path) -> None:
    """The ledger of a source is on the server: without one, the release would not be audited."""
    run = {
        "method": "suppression",
        "input": "trips.csv",
        "output": str(tmp_path / "out"),
        "parameters": {"source": "buses"},
    }
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "map.json").write_text(json.dumps(run | {"method": "quadtree-heatmap", "input": str(points)}))
    for verb, file in (("anonymize", "run.json"), ("analyze", "map.json")):
        code, _, said = crowdveil(verb, "-f", tmp_path / file)
        assert code == 2 and "--source: Expected a server" in said and not (tmp_path / "out").exists()


@pytest.mark.parametrize("line", [("flows",), ("describe",), ("attack", "releases")])
def test_input_options_without_effect_are_not_shown(crowdveil: Any, line: tuple[str, ...]) -> None:
    shown = crowdveil(*line, "--help")[1]
    assert "--zones " in shown and "--min-tiles-of " not in shown and "--partition " not in shown
    assert ("--hierarchy " in shown) == (line == ("describe",))


def test_defaults_of_zero_are_shown(crowdveil: Any) -> None:
    shown = " ".join(crowdveil("compare", "--help")[1].split())
    assert "[at least 0; default 0]" in shown and "default False" not in shown


def test_movers_on_a_network_of_ones_own(crowdveil: Any, tmp_path: Path) -> None:
    nodes, roads, movers = (tmp_path / n for n in ("nodes.txt", "roads.txt", "movers.parquet"))
    nodes.write_text("1 0 0\n2 900 0\n3 900 900\n4 5 5\n")
    roads.write_text("1 1 2 900\n2 2 3 950\n")
    code, shown, said = crowdveil("experiment", "movers", 40, "--network", nodes, roads, "-o", movers)
    assert code == 0 and "40 movers on 3 nodes and 2 roads" in shown and "left out 1 node that no road connects" in said
    assert len(set(pq.read_table(movers)["user_id"].to_pylist())) == 40
    before = movers.read_bytes()
    assert crowdveil("experiment", "movers", 40, "--network", nodes, roads, "-o", movers)[0] == 2
    roads.write_text("1 1 2 -900\n")
    code, _, said = crowdveil("experiment", "movers", 40, "--network", nodes, roads, "-o", movers, "--overwrite")
    assert code == 2 and "length below 0" in said and movers.read_bytes() == before


def test_distances_by_names_elsewhere(crowdveil: Any, tmp_path: Path) -> None:
    drives, out = tmp_path / "drives.parquet", tmp_path / "out"
    assert crowdveil("synth", "trajectories", 20, "--tiles", 25, "--people", 50, "--days", 1, "-o", drives)[0] == 0
    code, _, err = crowdveil("anonymize", "microaggregation", drives, "--distance", "Nobody1999", "-o", out)
    assert code == 2 and err.count("\n") == 1 and "distance: Expected 'spatiotemporal'" in err and not out.exists()
    assert crowdveil("anonymize", "microaggregation", drives, "--distance", "FerreiraTrujillo2016", "-o", out)[0] == 0
    assert json.loads((out / "manifest.json").read_text())["method"]["parameters"]["distance"] == "frechet-manhattan"
    shown = crowdveil("anonymize", "microaggregation", "--help")[1]
    assert (
        "[spatiotemporal|graph|dtw|discrete-frechet|frechet|edr|lcss|frechet-manhattan|frechet-manhattan-exact]"
        in shown
    )


def test_demo(crowdveil: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TRIPS", 20_000)
    monkeypatch.setattr(demo, "TRAJECTORIES", 300)
    out = tmp_path / "demo"
    code, shown, _ = crowdveil("demo", "-o", out)
    assert (
        code == 0
        and "4 guarantees can be checked from the files by anyone; 3 cannot be checked from the files alone" in shown
        and str(out / "flows") in shown
        and str(out / "trajectories") in shown
    )
    assert crowdveil("verify", out / "flows")[0] == 0 and crowdveil("verify", out / "trajectories")[0] == 0
    assert crowdveil("demo", "-o", out)[0] == 2, "an earlier demo is not replaced unasked"
    assert crowdveil("demo", "-o", out, "--overwrite")[0] == 0


def test_a_fault_of_ours_is_one_sentence(
    crowdveil: Any, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.run import local

    monkeypatch.delenv("CROWDVEIL_DEBUG", raising=False)
    monkeypatch.setattr(local, "read", lambda *_, **__: 1 / 0)
    code, _, err = crowdveil("anonymize", "simple-generalization", points, "-o", tmp_path / "out")
    assert code == 1 and err.count("\n") == 1 and "ZeroDivisionError" in err


def test_names_in_files_of_strangers_do_not_steer_the_terminal(command: Any, tmp_path: Path) -> None:
    (tmp_path / "evil.csv").write_text("a\x07b,c\n1,2\n")
    (tmp_path / "zones.csv").write_text("zone_id,lon,lat\na\x07,2.3,48.8\nb,2.4,48.9\n")
    (tmp_path / "flows.csv").write_text("origin,destination,volume,time\na\x07,b,12,2020-01-01T00:00\n")
    said = [
        command("flows", tmp_path / "evil.csv", "-o", tmp_path / "x.csv"),
        command(
            "anonymize",
            "suppression",
            tmp_path / "flows.csv",
            "--zones",
            tmp_path / "zones.csv",
            "-o",
            tmp_path / "out",
        ),
        command("analyze", "profiles", tmp_path / "out", "--pairs", "1"),
    ]
    assert [ran.code for ran in said] == [2, 0, 0] and "a\ufffd" in said[0].err and "from a\ufffd" in said[2].out
    for ran in said:
        assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in ran.out + ran.err), ran
