from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from examples import tries
from given_boxes import with_boxes
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil
from crowdveil import testing
from crowdveil.engine.progress import no_progress
from crowdveil.errors import CrowdveilError, InputError
from crowdveil.io.partition import read_partition
from crowdveil.methods.od.fixed import FixedParams, run
from crowdveil.model.flows import Flows
from crowdveil.model.partition import BoxPartition
from crowdveil.run import pipeline, releases

QUICK = {"attack": False, "report": False}


def _plain(data: Flows, k: int) -> set[tuple[int, frozenset[int], frozenset[int], int, int]]:
    """The twin: flows one by one, each looked for in every box."""
    partition = data.partition
    assert isinstance(partition, BoxPartition)
    areas = partition.areas
    tiles = [frozenset(areas.tiles[a:b].tolist()) for a, b in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)]
    volume: dict[Any, int] = defaultdict(int)
    people: dict[Any, set[Any]] = defaultdict(set)
    trips: dict[Any, int] = defaultdict(int)
    for i, (step, o, d, v, crowd) in enumerate(testing.flow_rows(data)):
        for a, b in zip(partition.origin.tolist(), partition.destination.tolist(), strict=True):
            if o in tiles[a] and d in tiles[b]:
                box = (step, tiles[a], tiles[b])
                volume[box] += v
                trips[box] += crowd
                if data.person_ids is not None and data.person_offsets is not None:
                    people[box] |= set(data.person_ids[data.person_offsets[i] : data.person_offsets[i + 1]].tolist())
    size = {box: len(people[box]) if data.k_unit == "people" else trips[box] for box in volume}
    return {(*box, volume[box], size[box]) for box in volume if size[box] >= k}


@settings(max_examples=tries(60), deadline=None)
@given(data=testing.flows(), seed=st.integers(0, 99), k=st.integers(2, 12))
def test_it_is_a_plain_group_by(data: Flows, seed: int, k: int) -> None:
    data = with_boxes(data, seed)
    release = run(data, FixedParams(k=k), np.random.default_rng(0), no_progress)
    areas = release.areas
    tiles = [frozenset(areas.tiles[a:b].tolist()) for a, b in zip(areas.offsets[:-1], areas.offsets[1:], strict=True)]
    columns = (release.step, release.origin, release.destination, release.volume, release.people)
    rows = zip(*(c.tolist() for c in columns), strict=True)
    assert {(s, tiles[o], tiles[d], v, p) for s, o, d, v, p in rows} == _plain(data, k)


def _trips(path: Path, days: int, *, moved: bool = False) -> Path:
    """Write trips of 40 people between four zones; `moved`: each one on a pair of zones that few others travel."""
    ends = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    pairs = [(o, d) for o in "abcd" for d in "abcd"]
    lines = ["origin,destination,time,user"]
    for day in range(1, days + 1):
        for person in range(40):
            for hour in (7, 17):
                o, d = pairs[(person + hour) % 16] if moved else ends[person % 4]
                lines.append(f"{o},{d},2024-03-{day:02}T{hour:02}:10:00,u{person}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def town(tmp_path: Path) -> dict[str, Any]:
    """Return input options with the zones of a small town."""
    zones = tmp_path / "zones.csv"
    zones.write_text("id,lon,lat\na,2.00,48.0\nb,2.01,48.0\nc,2.10,48.1\nd,2.11,48.1\n")
    return {"zones": str(zones), "zone_id": "id", "step": "1h", "tz": "Europe/Paris"}


def _run(method: str, data: Path, out: Path, reading: dict[str, Any], **parameters: Any) -> pipeline.Result:
    return pipeline.run(pipeline.Request(method, data, out, {"k": 5, **parameters}, reading, QUICK))


def test_nights_have_the_areas_of_the_reference(tmp_path: Path, town: dict[str, Any]) -> None:
    """From a reference release to a night, verified with its original; a night unlike the reference is warned about."""
    _run("joint", _trips(tmp_path / "month.csv", 3), tmp_path / "reference", town | {"step": "all"})
    reading = town | {"partition": str(tmp_path / "reference")}
    night = _run("fixed", _trips(tmp_path / "night.csv", 1), tmp_path / "night", reading)
    areas = [{n: t for n, t in _named(tmp_path / folder)} for folder in ("reference", "night")]
    assert areas[1].items() <= areas[0].items() and len(night.release) == 8
    assert not any("out of date" in note for note in night.notes.messages)
    checked = releases.verify(tmp_path / "night", tmp_path / "night.csv", {"zones": town["zones"]})
    assert all(finding.holds for _, finding in checked)
    assert list(night.manifest["input"]["options"]["partition"]) == ["sha256"]
    other = _run("fixed", _trips(tmp_path / "other.csv", 1, moved=True), tmp_path / "other", reading)
    assert any("out of date" in note for note in other.notes.messages)


def _named(folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    _, written = releases.open_release(folder)
    return [(f["properties"]["area"], tuple(f["properties"]["tiles"])) for f in written.features]


def test_districts_of_a_table(tmp_path: Path, town: dict[str, Any]) -> None:
    groups = pa.table({"group": ["west", "west", "east", "east"], "zone": ["a", "b", "c", "d"]})
    flows = crowdveil.read_flows(_trips(tmp_path / "t.csv", 1), **town, members=True)
    release = run(
        replace(flows, partition=read_partition(groups, flows.zones)),
        FixedParams(k=5),
        np.random.default_rng(0),
        no_progress,
    )
    names = release.areas.names
    rows = sorted(
        (names[o], names[d], v) for o, d, v in zip(release.origin, release.destination, release.volume, strict=True)
    )
    assert rows == [("east", "east", 20)] * 2 + [("west", "west", 20)] * 2


def test_areas_that_differ_are_no_partition(tmp_path: Path, town: dict[str, Any]) -> None:
    mixed = tmp_path / "mixed.csv"
    lines = [f"a,b,2024-03-01T07:10:00,u{i}" for i in range(9)] + [
        f"{'ab'[i % 2]},b,2024-03-01T17:10:00,u{i}" for i in range(9)
    ]
    mixed.write_text("origin,destination,time,user\n" + "\n".join(lines) + "\n")
    _run("joint", mixed, tmp_path / "hours", town, suppress=0)
    zones = crowdveil.read_flows(mixed, **town).zones
    with pytest.raises(InputError, match="differ from one time step to another"):
        read_partition(tmp_path / "hours", zones)


TABLES = [
    ({"zone": ["a"], "group": ["x"]}, "3 zones of the data have no group"),
    ({"zone": list("abcd"), "group": ["x", "x", "x", None]}, "1 zone of the data has no group"),
    ({"zone": list("aabcd"), "group": list("xyxxx")}, "in more than one row"),
    ({"zone": list("abcd")}, "Expected two columns"),
]


@pytest.mark.parametrize(("columns", "message"), TABLES)
def test_bad_tables(columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_partition(pa.table(columns), testing.Zones.from_ids(list("abcd")))


def test_it_needs_a_partition() -> None:
    one = np.ones(1, np.int64)
    data = Flows(testing.Zones.from_ids(["a"]), 0 * one, np.array([0, 1]), 0 * one, 0 * one, 30 * one, 30 * one)
    with pytest.raises(CrowdveilError, match="made before"):
        run(data, FixedParams(), np.random.default_rng(0), no_progress)


def test_small_flows_are_not_aggregated_outside_of_the_partition(command: Any, tmp_path: Path) -> None:
    (tmp_path / "trips.csv").write_text("origin,destination\na,b\na,b\n", encoding="utf-8")
    (tmp_path / "groups.csv").write_text("zone,group\na,1\nb,1\n", encoding="utf-8")
    args = ("--partition", tmp_path / "groups.csv", "--aggregate-small", "--k", "2", "-o", tmp_path / "out")
    ran = command("anonymize", "fixed", tmp_path / "trips.csv", *args)
    assert ran.code == 2 and "--aggregate-small: Expected the areas of the partition alone" in ran.sentence
