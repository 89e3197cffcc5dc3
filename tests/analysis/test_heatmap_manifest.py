"""Heat maps verified from their files: as they were written, tampered with, and with forged manifests."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pytest
from examples import ALL
from test_quadtree_heatmap import cabs

import crowdveil
from crowdveil.errors import CrowdveilError, GuaranteeViolatedError, InputError, ParameterError
from crowdveil.io.manifest import FORMAT
from crowdveil.io.written_release import file_hash
from test_forged_manifests import changed, places

INSTEAD: tuple[Any, ...] = (None, 7, {}, float("nan"), 10**30, "x")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Locations of people, and a heat map of them in a folder."""
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("heat")
    pc.write_csv(cabs(), folder / "cabs.csv")
    crowdveil.quadtree_heatmap(folder / "cabs.csv", folder / "map")
    return folder


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    """A copy of the map, to be tampered with."""
    shutil.copytree(made / "map", tmp_path / "map")
    return tmp_path / "map"


def _outcomes(path: Path, original: Any = None) -> dict[str, str]:
    return {guarantee.name: finding.outcome.value for guarantee, finding in crowdveil.verify(path, original)}


def _fit(folder: Path) -> None:
    """Put the hashes of the files into the manifest, as an adversary who forges it does."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["files"].values():
        entry["sha256"] = file_hash(folder / entry["name"])
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_a_map_is_verified_from_its_files_and_with_the_original(made: Path) -> None:
    alone = _outcomes(made / "map")
    assert alone == {
        "sector-k-anonymity": "holds", "disjoint-sectors": "holds", "every-location-counted": "not checked",
        "well-formed-sectors": "holds",
    }  # fmt: skip
    assert _outcomes(made / "map" / "heatmap.geojson") == alone
    for original in (made / "cabs.csv", cabs(), crowdveil.read_trajectories(made / "cabs.csv")):
        assert set(_outcomes(made / "map", original).values()) == {"holds"}
    others = _outcomes(made / "map", cabs(seed=1))
    assert others["sector-k-anonymity"] == "violated"


def test_the_original_is_read_with_the_options_of_the_map(made: Path, tmp_path: Path) -> None:
    """Files that a forged manifest names as zones are not opened."""
    data = cabs()
    odd = data.rename_columns([{"lon": "x", "lat": "y"}.get(name, name) for name in data.column_names])
    crowdveil.quadtree_heatmap(odd, tmp_path / "map", lon="x", lat="y")
    assert set(_outcomes(tmp_path / "map", odd).values()) == {"holds"}
    _edit(
        tmp_path / "map" / "manifest.json",
        lambda manifest: manifest["input_options"].update(zones=str(made / "none.csv")),
    )
    assert set(_outcomes(tmp_path / "map", odd).values()) == {"holds"}


def test_the_manifest_states_what_was_checked_and_no_suppressed_number(made: Path) -> None:
    text = (made / "map" / "manifest.json").read_text()
    manifest = json.loads(text)
    assert (
        manifest["format"] == FORMAT and manifest["analysis"] == "quadtree-heatmap" and manifest["k_unit"] == "people"
    )
    assert manifest["parameters"]["min_k"] == 5
    assert {p["outcome"] for p in manifest["guarantees"]} == {"holds"} and all(
        "checked" in p for p in manifest["guarantees"]
    )
    assert {e["name"] for e in manifest["files"].values()} == {"heatmap.geojson", "heatmap.png", "heatmap.html"}
    assert "secret" not in text and "cabs" not in text
    # Two of 1,500 locations are of one person: with 1,498 on the map, the number of all would reveal it.
    assert "1,500" not in text and "1500" not in text


def test_on_the_command_line(command: Any, made: Path, copied: Path) -> None:
    ran = command("verify", made / "map")
    assert (
        ran.code == 0
        and "3 guarantees can be checked from the files by anyone; 1 cannot be checked from the files alone." in ran.out
    )
    assert "k counts people; files are as they were written." in ran.out
    ran = command("verify", made / "map" / "heatmap.geojson", "--original", made / "cabs.csv")
    assert (
        ran.code == 0 and "checked by the publisher against the original" in ran.out and "no hash to check" in ran.out
    )
    _edit(copied / "heatmap.geojson", lambda c: c["features"][0]["properties"].update(people=4))
    ran = command("verify", copied)
    assert ran.code == 1 and "heatmap.geojson changed since the map was made" in ran.sentence
    _fit(copied)
    ran = command("verify", copied, "--json")
    assert ran.code == 1
    found = {f["name"]: f for f in json.loads(ran.out)["findings"]}
    assert found["sector-k-anonymity"]["outcome"] == "violated" and found["sector-k-anonymity"]["counts"]["small"] == 1


@pytest.mark.parametrize("name", ["heatmap.geojson", "heatmap.png", "heatmap.html"])
def test_every_file_has_a_hash(copied: Path, name: str) -> None:
    (copied / name).write_bytes((copied / name).read_bytes() + b"\n")
    with pytest.raises(GuaranteeViolatedError, match=f"{name} changed since the map was made"):
        crowdveil.verify(copied)
    (copied / name).unlink()
    with pytest.raises(InputError, match=f"lacks {name}"):
        crowdveil.verify(copied)


def test_a_map_without_a_manifest_and_a_manifest_of_another_format(copied: Path, made: Path) -> None:
    _edit(copied / "manifest.json", lambda m: m.update(format=1))
    with pytest.raises(InputError, match="manifest is broken"):
        crowdveil.verify(copied)
    (copied / "manifest.json").unlink()
    with pytest.raises(InputError, match="Expected a heat map with its manifest"):
        crowdveil.verify(copied)
    with pytest.raises(InputError, match="result of an analysis"):
        crowdveil.measure(made / "cabs.csv", made / "map")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["guarantees"].pop(0),
        lambda m: m.update(guarantees=[]),
        lambda m: m["guarantees"][0]["parameters"].update(k=2),
        lambda m: m["guarantees"][0].update(name="disjoint-flows", parameters={}),
    ],
    ids=["one is left out", "none is stated", "another k", "of something else"],
)
def test_guarantees_that_were_taken_out_of_a_manifest_are_missed(copied: Path, change: Any) -> None:
    whole = (copied / "manifest.json").read_text()
    _edit(copied / "manifest.json", change)
    with pytest.raises(GuaranteeViolatedError, match="contradict one another"):
        crowdveil.verify(copied)
    # The same in the map itself, with hashes that fit.
    (copied / "manifest.json").write_text(whole)
    _edit(copied / "heatmap.geojson", lambda c: change(c["crowdveil"]))
    _fit(copied)
    with pytest.raises(GuaranteeViolatedError, match="contradict one another"):
        crowdveil.verify(copied)
    with pytest.raises(GuaranteeViolatedError, match="contradict one another"):
        crowdveil.verify(copied / "heatmap.geojson")


def test_a_manifest_does_not_choose_which_files_are_opened(copied: Path) -> None:
    (copied.parent / "secret").write_text("x")
    _edit(copied / "manifest.json", lambda m: m["files"]["page"].update(name="../secret"))
    with pytest.raises(InputError, match="manifest is broken"):
        crowdveil.verify(copied)


@pytest.mark.parametrize("file", ["manifest.json", "heatmap.geojson"])
def test_forged_files_of_any_form_end_in_a_sentence(copied: Path, file: str) -> None:
    """Each place of a manifest, or of a map of two sectors, is taken out or holds what does not belong there."""
    content = json.loads((copied / file).read_text())
    if file != "manifest.json":
        content["features"] = content["features"][:2]
    refused, faults = 0, []
    for i, path in enumerate(places(content)):
        if "coordinates" in path and path[5:6] > (1,):  # a ring has many points
            continue
        for j, instead in enumerate((..., *INSTEAD)):
            if not ALL and (i + j) % 2:  # otherwise half of them, in turn
                continue
            (copied / file).write_text(json.dumps(changed(copy.deepcopy(content), path, instead)))
            if file != "manifest.json":
                _fit(copied)
            try:
                crowdveil.verify(copied)
            except CrowdveilError:
                refused += 1
            except Exception as error:
                faults.append((path, instead, repr(error)))
    assert refused > 100
    assert not faults, "\n".join(map(str, faults[:20]))


def test_people_that_the_original_does_not_name(made: Path) -> None:
    nameless = cabs().drop_columns(["user_id"])
    assert isinstance(nameless, pa.Table)
    with pytest.raises(InputError, match="counts trajectories in the original, but people in the heat map"):
        crowdveil.verify(made / "map", nameless)
    with pytest.raises(ParameterError, match="a heat map has no pairing"):
        crowdveil.verify(made / "map", cabs(), pairing=nameless)
