"""Examples in the help of commands and of methods: each runs in a folder with the files it names.

Commands that need a service are run by `test_doc_services.py`.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from doc_pages import commands_in

from crowdveil.cli.main import cli
from crowdveil.model.flows import Flows
from crowdveil.registry import METHODS, find_method

SERVICE = ("server",)
NOT_RUN = {
    "demo -o demo/": "run by make demo, with a million trips",
    "analyze topics out/ --zones zones.geojson --topics 2-8 --documents day": "the city made here has two days",
    "synth trips 1000000 --zones-out zones.geojson -o trips.parquet": "a smaller one is made here",
}
CITY = """
synth trips 20000 --tiles 100 --people 4000 --days 2 --seed 1 --zones-out zones.geojson -o trips.parquet
synth trajectories 300 --tiles 49 --people 150 --days 1 --seed 1 -o cabs.csv
"""
MADE = """
anonymize joint trips.parquet --zones zones.geojson --step 6h --k 5 -o out-flows
anonymize joint trips.parquet --zones zones.geojson --step 1h --k 5 -o hours
anonymize joint trips.parquet --zones zones.geojson --step 1d --k 5 -o joint
anonymize atg-dual trips.parquet --zones zones.geojson --step 1d --k 5 -o atg-dual
anonymize joint trips.parquet --zones zones.geojson --step 6h --k 5 --time-partition stable -o earlier
derive hours --step 1d -o days
trips cabs.csv --by transitions --zones grid:2km -o moves.parquet
anonymize suppression moves.parquet --zones grid:2km --step 1h --k 2 -o flows-of-cabs
hierarchy zones.geojson --hierarchy ward -o tree.csv
anonymize microaggregation cabs.csv --k 3 --pairing cabs-pairing.csv -o cabs
anonymize microaggregation cabs.csv --k 3 --pairing pairing.parquet -o out-cabs
anonymize microaggregation cabs.csv --k 3 --pairing pairing.parquet --overwrite -o tracks
trips cabs.csv -o rides.csv
analyze quadtree-heatmap cabs.csv --min-k 3 -o map
compare flows.csv --zones zones.geojson --methods joint,oigh --k 5,10 --sample 1 -o compared
ledger init ledger
derive hours --step all -o large
ledger add ledger hours --original trips.parquet --zones zones.geojson
ledger add ledger days --original trips.parquet --zones zones.geojson
ledger add ledger large --original trips.parquet --zones zones.geojson
"""


def _examples(command: click.Command) -> Iterator[list[str]]:
    """Yield the commands in the examples of a help, and in those of its subcommands."""
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        if paragraph.startswith("\b"):
            yield from commands_in("\n".join(line.strip() for line in paragraph.splitlines()))
    if isinstance(command, click.Group) and command.name != "anonymize":
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _examples(below)


def examples() -> list[str]:
    """Return the commands in the help and of the methods, once each."""
    found = [*_examples(cli)]
    for method in map(find_method, METHODS):
        data = method.example or ("trips.parquet --zones zones.geojson" if method.takes is Flows else "cabs.csv")
        found.append(["anonymize", method.name, *data.split(), "-o", "out/"])
    local = [" ".join(c) for c in found if c and c[0] not in SERVICE and "--server" not in c]
    return [text for text in dict.fromkeys(local) if text not in NOT_RUN]


def run(text: str) -> tuple[int, str]:
    arguments = text.split() if "never sent" not in text else [*text.split()[:-2], "never sent"]
    ran = CliRunner().invoke(cli, arguments)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        return getattr(ran.exception, "exit_code", 2), f"{ran.output}{ran.exception}"
    return ran.exit_code, ran.output


def _zones(folder: Path) -> None:
    """Give the zones a population; write coarser ones, and copies under the names that examples use."""
    zones = json.loads((folder / "zones.geojson").read_text())
    names = [feature["properties"]["zone_id"] for feature in zones["features"]]
    for feature in zones["features"]:
        feature["properties"] = {"zone_id": feature["properties"]["zone_id"], "population": 100}
    for name in ("zones", "districts"):
        (folder / f"{name}.geojson").write_text(json.dumps(zones))
    trips = pq.read_table(folder / "trips.parquet")
    pacsv.write_csv(trips, folder / "trips.csv")
    volumes = trips.group_by(["origin", "destination"]).aggregate([([], "count_all")])
    pacsv.write_csv(volumes.rename_columns(["origin", "destination", "volume"]), folder / "flows.csv")
    levels = [f"{zone},d{i // 4},r{i // 20}" for i, zone in enumerate(names)]
    (folder / "districts.csv").write_text("\n".join(["zone,group,region", *levels]) + "\n")
    centers = {zone: (i % 10 / 100, 40 + i // 10 / 100) for i, zone in enumerate(names)}
    rows = [f"{zone},{lon},{lat}" for zone, (lon, lat) in centers.items()]
    for name, head in (("zones", "zone_id,lon,lat"), ("antennas", "antenna,lon,lat")):
        (folder / f"{name}.csv").write_text("\n".join([head, *rows]) + "\n")
    ends = {side: [centers[zone] for zone in trips.column(side).to_pylist()] for side in ("origin", "destination")}
    places = {f"{side}_{name}": [at[n] for at in ends[side]] for side in ends for n, name in enumerate(("lon", "lat"))}
    taxi = {"user_id": trips.column("user_id"), "departure": trips.column("departure"), **places}
    pq.write_table(pa.table(taxi), folder / "taxi.parquet")
    for name in ("nyc", "civ"):
        shutil.copy(folder / "trips.csv", folder / f"{name}.csv")
        shutil.copy(folder / "zones.geojson", folder / f"{name}.geojson")


def _files(folder: Path) -> None:
    """Write the small files of examples."""
    raw = [
        f"c{c},37.7{i % 9},-122.4{i % 7},{int(i % 5 > 0)},{1211018400 + 60 * i}" for c in range(4) for i in range(40)
    ]
    (folder / "raw.csv").write_text("\n".join(["cab,lat,lon,occupied,time", *raw]) + "\n")
    (folder / "run.toml").write_text(
        'method = "joint"\ninput = "trips.parquet"\noutput = "out"\n[reading]\nzones = "zones.geojson"\n'
    )
    at = [(p, i, (p + i // 4) % 100) for p in range(40) for i in range(40)]
    calls = [f"p{p},{40 + a // 10 / 100},{a % 10 / 100},{1772409600 + 900 * i + p}" for p, i, a in at]
    (folder / "calls.csv").write_text("\n".join(["user,lat,lon,time", *calls]) + "\n")
    (folder / "vertices.txt").write_text("".join(f"{i} {i % 5} {i // 5}\n" for i in range(25)))
    roads = [(i, i + 1) for i in range(25) if i % 5 < 4] + [(i, i + 5) for i in range(20)]
    (folder / "edges.txt").write_text("".join(f"{n} {a} {b} 1\n" for n, (a, b) in enumerate(roads)))
    for name in ("movers", "cabs"):
        pq.write_table(pacsv.read_csv(folder / "cabs.csv"), folder / f"{name}.parquet")
    (folder / "queries.csv").write_text("lon,lat,radius_m,start,end\n0.05,40.05,2000,0,4000000000\n")
    (folder / "run.json").write_text(json.dumps({
        "method": "QuadTreeHeatMap", "input_file": "cabs.csv", "output_folder": "files", "main_output_file": "map.json",
        "params": {"min_k": 3},
    }))  # fmt: skip
    (folder / "parameters.json").write_text(
        json.dumps({"input_filename": "cabs.csv", "output_filename": "clean.csv", "methods": [{"min_locations": 2}]})
    )
    shutil.copy(folder / "cabs.csv", folder / "published-by-others.csv")
    (folder / "measures.json").write_text(json.dumps({
        "original_dataset": "cabs.csv", "anonymized_dataset": "published-by-others.csv",
        "measures": [{"name": "TrajectoriesRemoved"}],
    }))  # fmt: skip


def _made(lines: str) -> None:
    for line in lines.strip().splitlines():
        code, said = run(line)
        assert code == 0, f"crowdveil {line}\n{said}"


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    with contextlib.chdir(folder):
        _made(CITY)
        _zones(folder)
        _files(folder)
        _made(MADE)
    return folder


@pytest.fixture
def here(stored: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with everything that examples read, as links."""
    shutil.copytree(stored, tmp_path / "here", copy_function=os.link, ignore=shutil.ignore_patterns("ledger"))
    shutil.copytree(stored / "ledger", tmp_path / "here" / "ledger")
    with contextlib.chdir(tmp_path / "here"):
        yield tmp_path / "here"


def test_what_is_not_run_is_an_example() -> None:
    assert set(NOT_RUN) <= {" ".join(c) for c in _examples(cli)}


@pytest.mark.slow
@pytest.mark.parametrize("text", examples())
def test_an_example_runs(text: str, here: Path) -> None:
    words = text.split()
    reads_trajectories = "cabs.csv" in words or "cabs/" in words
    (here / ("out-cabs" if reads_trajectories else "out-flows")).rename(here / "out")
    if "-o" in words or words[:2] == ["anonymize", "-f"]:
        target = here / (words[words.index("-o") + 1] if "-o" in words else "out")
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    if (
        words[:2] == ["ledger", "init"]
        or words[0] == "anonymize"
        or words[:2] in (["ledger", "check"], ["ledger", "add"])
    ):
        shutil.rmtree(here / "ledger")
    if not (here / "ledger").exists() and words[:2] != ["ledger", "init"]:
        assert run("ledger init ledger/")[0] == 0
    if words[:2] == ["ledger", "explain"]:
        refused, _ = run("ledger add ledger/ joint/ --original trips.parquet --zones zones.geojson")
        assert refused == 1, "it was made of the same trips with other areas"
    if "stays" in words:
        stays = [
            f"p{p},{40 + p % 5 / 50 * (i // 9)},{p % 3 / 50},{1772409600 + 300 * i}"
            for p in range(20)
            for i in range(18)
        ]
        (here / "cabs.csv").unlink()
        (here / "cabs.csv").write_text("\n".join(["user,lat,lon,timestamp", *stays]) + "\n")
    code, said = run(text)
    assert code == 0, f"crowdveil {text}\n{said}"
