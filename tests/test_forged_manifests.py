"""Manifests that were changed: whatever is done with the release, what comes of it is one sentence."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import ALL

import crowdveil
from crowdveil.errors import CrowdveilError, GuaranteeViolatedError, InputError
from crowdveil.io.manifest import INPUT_FILES, read_manifest
from crowdveil.io.written_release import file_hash

INSTEAD: tuple[Any, ...] = (..., None, 7, {})
"""What a place holds in a changed manifest; `...` means that the place is missing."""


@pytest.fixture(scope="module")
def trips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty trips by twenty people between two zones."""
    path = tmp_path_factory.mktemp("data") / "trips.parquet"
    columns = {"origin": ["n"] * 40, "destination": ["s"] * 40, "user_id": [*range(20), *range(20)]}
    times = pa.array(np.arange(40) * 60_000_000, pa.timestamp("us"))
    pq.write_table(pa.table(columns | {"time": times}), path)
    return path


@pytest.fixture(scope="module")
def release(trips: Path) -> Path:
    """A release of them."""
    folder = trips.parent / "out"
    crowdveil.anonymize(trips, folder, method="suppression", k=5)
    return folder


def changes(content: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every change of every place where all tests are run; otherwise one of each place, in turn."""
    for i, path in enumerate(places(content)):
        yield from ((path, instead) for j, instead in enumerate(INSTEAD) if ALL or (i + j) % len(INSTEAD) == 0)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something in a manifest."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from places(value[key], (*path, key))


def changed(manifest: dict[str, Any], path: tuple[Any, ...], instead: Any) -> dict[str, Any]:
    """The manifest with something else in a place, or, for an `...`, nothing."""
    made = copy.deepcopy(manifest)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    if instead is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = instead
    return made


def test_manifests_of_any_form_end_in_a_sentence(trips: Path, release: Path, tmp_path: Path) -> None:
    """Each place of a manifest is taken out, or holds what does not belong there."""
    manifest = json.loads((release / "manifest.json").read_text())
    folder = tmp_path / "forged"
    shutil.copytree(release, folder)
    refused, faults = 0, []
    for path, instead in changes(manifest):
        (folder / "manifest.json").write_text(json.dumps(changed(manifest, path, instead)))
        for use in (
            lambda: crowdveil.verify(folder),
            lambda: crowdveil.verify(folder, trips),
            lambda: crowdveil.measure(trips, folder),
            lambda: crowdveil.write_report(folder),
        ):
            try:
                use()
            except CrowdveilError:
                refused += 1
            except Exception as error:
                faults.append((path, instead, repr(error)))
    assert refused > 100
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("forged", ["grid:500m", 7, {"name": ["grid:500m"]}, {"sha256": 3}])
def test_an_input_file_is_described_by_texts(trips: Path, release: Path, tmp_path: Path, forged: Any) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(release, folder)
    for name in INPUT_FILES:
        manifest = json.loads((release / "manifest.json").read_text())
        manifest["input"]["options"][name] = forged
        (folder / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(InputError, match="the manifest is broken"):
            crowdveil.verify(folder, trips)


@pytest.mark.parametrize(
    ("key", "forged"),
    [
        ("k", 6),
        ("time_zone", "../../etc/passwd"),
        ("step_seconds", -1),
        ("step_seconds", True),
        ("more", 1),
        ("format", 5),
    ],
)
def test_a_manifest_says_each_thing_once(release: Path, tmp_path: Path, key: str, forged: Any) -> None:
    """k is that of the method, the zone exists, a step has a length, and nothing else is in it."""
    manifest = json.loads((release / "manifest.json").read_text())
    assert (manifest["k"], manifest["k_unit"], manifest["step_seconds"], manifest["time_zone"]) == (
        5,
        "people",
        3600,
        "UTC",
    )
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {key: forged}))
    with pytest.raises(InputError, match="format is 5" if key == "format" else "the manifest is broken"):
        read_manifest(tmp_path)


def test_a_manifest_is_written_as_it_was_read(release: Path) -> None:
    assert read_manifest(release).text == (release / "manifest.json").read_text(encoding="utf-8")


def test_a_violated_budget_cannot_be_passed_off_as_rounding(tmp_path: Path) -> None:
    """The publisher suppresses 45 %, states a budget of 5 %, and claims that weights explain the difference."""
    zones, folder = tmp_path / "zones.csv", tmp_path / "out"
    zones.write_text("zone_id,lon,lat\nz0,2.0,48\nz1,2.1,48.2\nz2,2.5,48.1\nz3,2.7,48.4\n")
    others = [(a, b) for a in range(4) for b in range(4) if a != b and (a, b) != (0, 1)]
    pairs = [(0, 1)] * 40 + others * 3
    ends = {name: [f"z{pair[i]}" for pair in pairs] for i, name in enumerate(("origin", "destination"))}
    table = pa.table(ends | {"user_id": range(len(pairs))})
    crowdveil.anonymize(table, folder, method="joint", zones=zones, k=5, suppress=0.5, report=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    stated = next(entry for entry in manifest["guarantees"] if entry["name"] == "suppression-budget")

    def outcome() -> str:
        (folder / "manifest.json").write_text(json.dumps(manifest))
        try:
            return next(f.outcome for g, f in crowdveil.verify(folder) if g.name == "suppression-budget")
        except GuaranteeViolatedError as error:
            return str(error)

    assert outcome() == "holds"
    manifest["method"]["parameters"]["suppress"] = stated["parameters"]["suppress"] = 0.05
    assert outcome() == "violated"
    stated["parameters"]["weighted"] = True
    assert "does not state the guarantee suppression-budget" in outcome()
    manifest["input"]["options"]["weight"] = "w"
    assert "contradicts itself" in outcome()
    manifest["cost"]["flows_rounded_to_0_percent"] = 0
    assert outcome() == "violated", "one flow is published, which rounding changes by less than a trip"


def test_a_period_keeps_its_time_zone(trips: Path, tmp_path: Path) -> None:
    """Another zone would compare other hours with the budget."""
    folder = tmp_path / "out"
    crowdveil.anonymize(
        trips, folder, method="joint", zones=_two_zones(tmp_path), k=5, time_partition="stable", report=False
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    stated = next(entry for entry in manifest["guarantees"] if entry["name"] == "period-budget")
    stated["parameters"]["tz"] = "Asia/Kathmandu"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(GuaranteeViolatedError, match="does not state the guarantee period-budget"):
        crowdveil.verify(folder)


@pytest.mark.parametrize("role", ["data", "steps", "areas", "area"])
def test_a_file_holds_nothing_else(trips: Path, tmp_path: Path, role: str) -> None:
    """A column, or a property of an area, that no release has could name a person."""
    folder = tmp_path / "out"
    crowdveil.anonymize(trips, folder, method="suppression", zones=_two_zones(tmp_path), k=5, report=False)
    manifest = json.loads((folder / "manifest.json").read_text())
    entry = manifest["files"]["areas" if role == "area" else role]
    path = folder / entry["name"]
    if role in ("data", "steps"):
        table = pq.read_table(path)
        pq.write_table(table.append_column("who", pa.array(["ann"] * len(table))), path)
    else:
        areas = json.loads(path.read_text())
        (areas if role == "areas" else areas["features"][0]["properties"])["who"] = "ann"
        path.write_text(json.dumps(areas))
    entry["sha256"] = file_hash(path)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if role in ("data", "steps"):
        assert not crowdveil.verify(folder).ok
    else:
        with pytest.raises(InputError, match="is broken"):
            crowdveil.verify(folder)


def _two_zones(folder: Path) -> Path:
    zones = folder / "zones.csv"
    zones.write_text("zone_id,lon,lat\nn,2.3,48.8\ns,2.4,48.9\n")
    return zones


def test_lists_of_areas_of_any_form_end_in_a_sentence(trips: Path, tmp_path: Path) -> None:
    """The same for the areas, with a manifest that fits."""
    zones, folder = _two_zones(tmp_path), tmp_path / "out"
    crowdveil.anonymize(trips, folder, method="suppression", zones=zones, k=5, report=False)
    areas, manifest = (json.loads((folder / name).read_text()) for name in ("areas.geojson", "manifest.json"))
    faults = []
    for path, instead in changes(areas):
        (folder / "areas.geojson").write_text(json.dumps(changed(areas, path, instead)))
        manifest["files"]["areas"]["sha256"] = file_hash(folder / "areas.geojson")
        (folder / "manifest.json").write_text(json.dumps(manifest))
        for use in (
            lambda: crowdveil.verify(folder),
            lambda: crowdveil.measure(trips, folder, zones=zones),
            lambda: crowdveil.write_report(folder),
        ):
            try:
                use()
            except CrowdveilError:
                continue
            except Exception as error:
                faults.append((path, instead, repr(error)))
    assert not faults, "\n".join(map(str, faults))
