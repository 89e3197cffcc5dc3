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
from crowdveil.errors import CrowdveilError
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
    crowdveil.anonymize("suppression", trips, folder, k=5)
    return folder


def changes(content: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every change of every place where all tests are run; otherwise two of each place, in turn."""
    for i, path in enumerate(places(content)):
        yield from ((path, instead) for j, instead in enumerate(INSTEAD) if ALL or (i + j) % 2 == 0)


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


def test_lists_of_areas_of_any_form_end_in_a_sentence(trips: Path, tmp_path: Path) -> None:
    """The same for the areas, with a manifest that fits."""
    zones, folder = tmp_path / "zones.csv", tmp_path / "out"
    zones.write_text("zone_id,lon,lat\nn,2.3,48.8\ns,2.4,48.9\n")
    crowdveil.anonymize("suppression", trips, folder, zones=zones, k=5, report=False)
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
