"""The requests that mdl-anonymizer's own client sends, replayed.

Its paths have no slash at the end, its files come with their names, and it polls until an answer has a file name.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Running, asking, cabs

from crowdveil.compat.mobidatalab.routes import PROCESSING
from crowdveil.server.service import Service

CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "anonymize": ("anonymize", {"method": "SimpleGeneralization", "params": {"tile_size": 500}}, "lat,lon,timestamp"),
    "swap": ("anonymize", {"method": "SwapMob", "params": {"spatial_thold": 5, "temporal_thold": 600}}, "lat,lon,timestamp"),
    "analyze": ("analyze", {"method": "QuadTreeHeatMap", "params": {"min_k": 3}}, '{"type":'),
    "filter": ("filter", {"methods": [{"min_locations": 2}]}, "lat,lon,timestamp"),
    "rmse": ("compute_measures", {"measures": [{"name": "Rsme"}]}, "{"),
    "measures": ("compute_measures", {"measures": [{"name": "TrajectoriesRemoved", "params": {}}]}, "{"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_its_client_gets_a_file(case: str, running: Running, tmp_path: Path) -> None:
    action, config, begins = CASES[case]
    (tmp_path / "cabs.csv").write_text(cabs(20))
    (tmp_path / "run.json").write_text(json.dumps(config | {"input_file": "cabs.csv", "output_folder": "output"}))
    if action == "filter":
        (tmp_path / "run.json").write_text(
            json.dumps(config | {"input_filename": "cabs.csv", "output_filename": "f.csv"})
        )
    if action == "compute_measures":
        places = {"original_dataset": "cabs.csv", "anonymized_dataset": "cabs.csv", "output_folder": "output"}
        (tmp_path / "run.json").write_text(json.dumps(config | places))
    with running.client() as anna:
        posted = _post(anna, action, tmp_path)
        assert posted.status_code == 200 and posted.json()["status"] == "OK", posted.text
        got = _poll(anna, posted.json()["task_id"])
        name = re.findall('filename="(.+)"', got.headers["content-disposition"])[0]
        assert "/" not in name and got.text.startswith(begins), (name, got.text[:80])
        if name.endswith(".json"):
            assert got.json()


def _post(client: httpx.Client, action: str, folder: Path) -> httpx.Response:
    """Send what its `post_user_data` and `post_user_data2` send: open files by field, and nothing else."""
    data = ["original_dataset", "anonymized_dataset"] if action == "compute_measures" else ["input_dataset"]
    with (folder / "cabs.csv").open("rb") as first, (folder / "cabs.csv").open("rb") as second:
        files: list[Any] = list(zip(data, (first, second), strict=False))
        with (folder / "run.json").open("rb") as config:
            return client.post(f"/{action}", files=[*files, ("config_file", config)])


def _poll(client: httpx.Client, task: str) -> httpx.Response:
    """Ask for the task until there is a file; its client takes an answer without a file name for "not yet"."""
    for _ in range(600):
        got = client.get("/task", params={"task_id": task})
        assert got.status_code == 200
        if "content-disposition" in got.headers:
            return got
        assert got.json()["message"]
        assert got.json()["status"] == "NOT_AVAILABLE", got.text
        time.sleep(0.1)
    raise AssertionError("no file came")


@pytest.mark.slow
def test_tiles_and_a_pairing_are_uploaded_and_results_keep_their_names(running: Running) -> None:
    """As the document writes them: fields with a capital letter, and names of files in the run file."""
    square = [[[-123.0, 37.0], [-122.0, 37.0], [-122.0, 38.0], [-123.0, 38.0], [-123.0, 37.0]]]
    tile = {"type": "Feature", "properties": {"id": 1}, "geometry": {"type": "Polygon", "coordinates": square}}
    tiles = json.dumps({"type": "FeatureCollection", "features": [tile]})
    run = {"method": "SimpleGeneralization", "input_file": "x/cabs.csv", "output_folder": "o",
           "main_output_file": "tiled.csv", "params": {"tiles_filename": "x/tiles.geojson"}}  # fmt: skip
    files = {"Input_dataset": ("cabs.csv", cabs()), "config_file": ("run.json", json.dumps(run))}
    with running.client() as anna:
        missing = anna.post("/anonymize/", files=files)
        assert missing.status_code == 422 and "tiles" in missing.json()["message"].lower()
        posted = anna.post("/anonymize/", files=files | {"Tiles_filename": ("tiles.geojson", tiles)})
        assert posted.json()["status"] == "OK", posted.text
        got = _poll(anna, posted.json()["task_id"])
        assert 'filename="tiled.csv"' in got.headers["content-disposition"]
        places = {line.rsplit(",", 2)[0] for line in got.text.splitlines()[1:]}
        assert len(places) == 1  # every point is at the center of the one tile
        ids = sorted({line.split(",")[3] for line in got.text.splitlines()[1:]})
        pairing = "published_id,trajectory_id\n" + "".join(f"{i},{int(i) - 1}\n" for i in ids)
        asked = {"measures": [{"name": "Rsme"}], "main_output_file": "lost.json", "pairing": "x/kept.csv"}
        both = {"original_dataset": ("cabs.csv", cabs()), "anonymized_dataset": ("tiled.csv", got.text)}
        forms = both | {"config_file": ("m.json", json.dumps(asked)), "Pairing": ("kept.csv", pairing)}
        measured = _poll(anna, anna.post("/compute_measures/", files=forms).json()["task_id"])
        assert 'filename="lost.json"' in measured.headers["content-disposition"]
        assert measured.json()["notes"][0] == "trajectories are paired with their originals by the given pairing."
        del asked["pairing"], forms["Pairing"]
        unpaired = anna.post("/compute_measures/", files=forms | {"config_file": ("m.json", json.dumps(asked))})
        task = unpaired.json()["task_id"]
        while (said := anna.get("/task/", params={"task_id": task}).json())["status"] == "NOT_AVAILABLE":
            time.sleep(0.1)
        assert said["status"] == "ERROR" and "the original of each trajectory is not known" in said["message"]


def test_wrong_requests_are_answered_in_its_form(service: Service) -> None:
    anna = asking(service, "anna")
    config = {"method": "SimpleGeneralization", "input_file": "/home/x/cabs.csv", "output_folder": "/out"}
    both = {"original_dataset": ("a.csv", cabs()), "anonymized_dataset": ("b.csv", cabs())}
    for action, data, asked, sentence in (
        (
            "anonymize",
            {"input_dataset": ("a.csv", cabs())},
            config | {"method": "Nothing"},
            "there is no method Nothing",
        ),
        (
            "analyze",
            {"input_dataset": ("a.csv", cabs())},
            {"method": "QuadTree", "input_file": "a"},
            "there is no analysis",
        ),
        ("compute_measures", both, {"measures": [{"name": "nothing", "params": {}}]}, "there is no measure nothing"),
    ):
        answer = anna.post(f"/{action}/", files={**data, "config_file": ("p.json", json.dumps(asked))})
        found = answer.json()
        assert answer.status_code == 422 and found["status"] == "ERROR", answer.text
        assert found["message"].startswith(sentence) and found["message"] == found["error"]["message"]
    files = {"input_dataset": ("cabs.csv", cabs()), "config_file": ("parameters.json", json.dumps(config))}
    answer = anna.post("/anonymize/", files=files).json()
    assert answer["status"] == "OK" and answer["message"] == PROCESSING and len(answer["task_id"]) == 32
