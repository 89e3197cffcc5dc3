"""Run files to requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from run_files import task
from run_files import write_and_read as request_of

from crowdveil.compat.mobidatalab.names import METHODS
from crowdveil.errors import ParameterError
from crowdveil.solve.trajectory.clustering import CLUSTERINGS

TOML = """
method = "suppression"
input = "trips.parquet"
output = "out"
seed = 5
format = "csv"
overwrite = true

[parameters]
k = 7

[reading]
zones = "zones.geojson"
step = "1h"
"""


def test_toml_and_json_of_ours_are_the_same_request(tmp_path: Path) -> None:
    as_json = {
        "method": "suppression", "input": "trips.parquet", "output": "out", "seed": 5, "format": "csv", "overwrite": True,
        "parameters": {"k": 7}, "reading": {"zones": "zones.geojson", "step": "1h"},
    }  # fmt: skip
    request = request_of(tmp_path / "run.toml", TOML)
    assert request == request_of(tmp_path / "run.json", as_json)
    assert request == request_of(tmp_path / "marked.json", "\ufeff" + json.dumps(as_json))
    assert (request.method, request.data, request.output) == ("suppression", "trips.parquet", "out")
    assert (request.parameters, request.reading) == ({"k": 7}, {"zones": "zones.geojson", "step": "1h"})
    assert request.options == {"seed": 5, "format": "csv"} and request.overwrite


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    short = {"method": "suppression", "input": "a.csv", "output": "out"}
    request = request_of(tmp_path / "run.json", short)
    assert (request.options, request.parameters) == ({}, {})


def test_a_file_of_mdl_anonymizer_is_taken_as_it_is(tmp_path: Path) -> None:
    content = {
        "method": "SimpleGeneralization", "input_file": "data/cabs.csv", "output_folder": "output",
        "main_output_file": "cabs_anonymized.csv",
        "params": {"tile_size": 500, "overlapping_strategy": "one", "seed": 43,
                   "tiles_filename": "tiles.geojson", "nothing": None},
    }  # fmt: skip
    request = request_of(tmp_path / "run.json", content)
    assert (request.method, request.data) == ("simple-generalization", "data/cabs.csv")
    assert request.output == Path("output/cabs_anonymized")
    assert request.data_name == "cabs_anonymized.csv"
    assert request.options == {"seed": 43, "format": "csv"}
    assert request.parameters == {"tile_size_m": 500, "overlapping_strategy": "one"}
    assert request.reading == {"zones": "tiles.geojson"}
    del content["main_output_file"], content["params"]
    assert request_of(tmp_path / "run.json", content).data_name == "cabs_anonymized.csv"


def test_an_object_with_a_name_becomes_the_name_and_its_parameters(tmp_path: Path) -> None:
    inner = {"name": "Other", "params": {"a": {"name": "In", "params": {"b": 1}}, "c": None}}
    content = {"method": "SimpleGeneralization", "input_file": "a.csv", "output_folder": "o", "params": {"part": inner}}
    assert request_of(tmp_path / "run.json", content).parameters == {"part": "Other", "part.a": "In", "part.a.b": 1}
    inner["params"] = [1]
    with pytest.raises(ParameterError, match="params of part must be an object of names and values"):
        request_of(tmp_path / "run.json", content)
    inner["parameters"] = {}
    with pytest.raises(ParameterError, match=r"unknown key parameters. Known are name, params"):
        request_of(tmp_path / "run.json", content)


def _micro(method: str, distance: dict[str, Any], aggregation: Any = None, **params: Any) -> dict[str, Any]:
    """A run file as the manual of mdl-anonymizer has it."""
    clustering = {"name": "SimpleMDAV", "params": {"trajectory_distance": distance}}
    parts = {"clustering_method": clustering, "aggregation_method": aggregation}
    return {"method": method, "input_file": "a.csv", "output_folder": "o", "params": {**parts, **params}}


THEIR_MEANS = {"aggregation": "mean-trajectory"}
"""What mdl-anonymizer does where nothing is given, and ours does not."""


def test_microaggregation_of_mdl_anonymizer(tmp_path: Path) -> None:
    distance = {"name": "Martinez2021", "params": {"p_lambda": 0.00657901067783612}}
    request = request_of(tmp_path / "run.json", _micro("Microaggregation", distance, {"name": "Mean_trajectory"}, k=3))
    assert request.method == "microaggregation"
    assert request.parameters == {
        "k": 3, "distance": "spatiotemporal", "time_weight": 0.00657901067783612, "aggregation": "mean-trajectory",
    }  # fmt: skip
    closest = {"name": "Closest_trajectory_to_mean_trajectory", "params": {"p_lambda": 0.00657901067783612}}
    assert request_of(tmp_path / "run.json", _micro("Microaggregation", distance, closest)).parameters == {
        "distance": "spatiotemporal", "time_weight": 0.00657901067783612, "aggregation": "closest-trajectory",
        "aggregation_time_weight": 0.00657901067783612,
    }  # fmt: skip
    graph = request_of(tmp_path / "run.json", _micro("Microaggregation", {"name": "DomingoTrujillo2012"}))
    assert graph.parameters == {"distance": "graph", "time_weight": "mobidatalab", **THEIR_MEANS}


@pytest.mark.parametrize("method", ["Microaggregation", "TimePartMicroaggregation"])
def test_the_center_of_simple_mdav_is_an_aggregation(method: str, tmp_path: Path) -> None:
    center = {"name": "Closest_trajectory_to_mean_trajectory"}
    clustering = {"name": "SimpleMDAV", "params": {"aggregation_method": center}}
    content = {
        "method": method,
        "input_file": "a.csv",
        "output_folder": "o",
        "params": {"clustering_method": clustering},
    }
    parameters = request_of(tmp_path / "run.json", content).parameters
    assert parameters["center_aggregation"] == "closest-trajectory"
    assert parameters.get("aggregation", "mean-trajectory") == "mean-trajectory"


def test_time_partitioned_microaggregation_of_mdl_anonymizer(tmp_path: Path) -> None:
    distance = {"name": "Martinez2021", "params": {"p_lambda": 0}}
    aggregation = {"name": "Mean_trajectory", "params": {}}
    content = _micro("TimePartMicroaggregation", distance, aggregation, k=3, interval=60)
    request = request_of(tmp_path / "run.json", content)
    assert request.method == "time-partitioned-microaggregation"
    assert request.parameters == {
        "k": 3, "interval_s": 60, "distance": "spatiotemporal", "time_weight": 0, "aggregation": "mean-trajectory",
    }  # fmt: skip


@pytest.mark.parametrize("method", ["Microaggregation", "TimePartMicroaggregation"])
def test_a_lambda_that_is_not_given_is_computed_as_theirs_is(method: str, tmp_path: Path) -> None:
    content = {"method": method, "input_file": "a.csv", "output_folder": "o", "params": {"k": 5}}
    theirs = THEIR_MEANS if method == "Microaggregation" else {}
    assert request_of(tmp_path / "run.json", content).parameters == {"k": 5, "time_weight": "mobidatalab", **theirs}
    content = _micro(method, {"name": "Martinez2021", "params": {"p_lambda": None}})
    assert request_of(tmp_path / "run.json", content).parameters["time_weight"] == "mobidatalab"


@pytest.mark.parametrize(
    ("method", "part", "value", "sentence"),
    [
        ("Microaggregation", "aggregation_method", {"name": "Median"}, "there is no aggregation Median. Known are mean-"),
        (
            "Microaggregation",
            "clustering_method",
            {"name": "SimpleMDAV", "params": {"trajectory_distance": {"name": "Euclid"}}},
            "there is no distance Euclid. Known are spatiotemporal, graph, dtw, discrete-frechet",
        ),
    ],
)  # fmt: skip
def test_parts_that_are_not_there_are_refused_in_one_sentence(
    method: str, part: str, value: Any, sentence: str, tmp_path: Path
) -> None:
    content = {"method": method, "input_file": "a.csv", "output_folder": "o", "params": {part: value}}
    with pytest.raises(ParameterError, match=sentence.replace(".", r"\.")) as refusal:
        request_of(tmp_path / "run.json", content)
    assert str(refusal.value).endswith(".") and "\n" not in str(refusal.value)


@pytest.mark.parametrize(("ours", "name"), [(ours, name) for ours, other in METHODS.items() for name in other.names])
def test_methods_of_mdl_anonymizer_are_found_by_their_names(ours: str, name: str, tmp_path: Path) -> None:
    content = {"method": name, "input_file": "a.csv", "output_folder": "o"}
    assert request_of(tmp_path / "run.json", content).method == ours


@pytest.mark.parametrize("seed", ["x", -1, 1.5, True, [1]])
def test_seeds_that_are_none_are_refused(seed: Any, tmp_path: Path) -> None:
    ours = {"method": "suppression", "input": "a.csv", "output": "out", "seed": seed}
    mdl = {"method": "SimpleGeneralization", "input_file": "a.csv", "output_folder": "o", "params": {"seed": seed}}
    with pytest.raises(ParameterError, match=r"run\.json: seed: Expected"):
        request_of(tmp_path / "run.json", ours)
    with pytest.raises(ParameterError, match=r"run\.json: seed: Expected"):
        request_of(tmp_path / "run.json", mdl)


@pytest.mark.parametrize("name", ["../x.csv", "/x.csv", "a/b.csv", "x", "x.xls", "", ".csv", 5, ["x.csv"]])
def test_the_main_file_of_mdl_anonymizer_is_a_plain_name(name: Any, tmp_path: Path) -> None:
    content = {"method": "SimpleGeneralization", "input_file": "a.csv", "output_folder": "o", "main_output_file": name}
    if name == "":
        assert request_of(tmp_path / "run.json", content).data_name == "a_anonymized.csv"
        return
    with pytest.raises(ParameterError, match="main_output_file must be a plain name"):
        request_of(tmp_path / "run.json", content)


@pytest.mark.parametrize("method", ["Microaggregation", "TimePartMicroaggregation"])
@pytest.mark.parametrize("clustering", [*(record.name for record in CLUSTERINGS), "SimpleMDAV"])
def test_every_clustering_can_be_named(method: str, clustering: str, tmp_path: Path) -> None:
    params = {"clustering_method": {"name": clustering}}
    content = {"method": method, "input_file": "a.csv", "output_folder": "o", "params": params}
    parameters = request_of(tmp_path / "run.json", content).parameters
    assert parameters.get("clustering", "SimpleMDAV") == clustering


@pytest.mark.parametrize("key", ["input_filename", "original_dataset"])
def test_a_file_of_filters_names_its_data_as_either_client_does(key: str, tmp_path: Path) -> None:
    assert task("filter", {key: "a.csv", "methods": [{"min_locations": 5}]}).files == {"data": "a.csv"}
