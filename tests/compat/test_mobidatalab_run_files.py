"""Run files of mdl-anonymizer: its defaults, its spellings, and what its routes make of them."""

from __future__ import annotations

from typing import Any

import pytest
from run_files import parts_of, task

from crowdveil.compat.mobidatalab.routes import _analyze, _anonymize, _filter, _measure
from crowdveil.errors import ParameterError
from crowdveil.methods.trajectory.protected_generalization import ProtectedGeneralizationParams

PLACES = {"input_file": "cabs.csv", "output_folder": "out"}


@pytest.mark.parametrize(
    ("given", "interval", "strategy"),
    [
        ({}, 0, "keep"),
        ({"time_interval": None, "time_strategy": None}, 0, "keep"),
        ({"time_interval": 60}, 3600, "keep"),
        ({"Time_Interval": 2, "TIME_STRATEGY": "same"}, 120, "same"),
    ],
)
def test_protected_generalization_has_the_defaults_of_the_document(
    given: dict[str, Any], interval: int, strategy: str
) -> None:
    asked = parts_of({"method": "ProtectedGeneralization", **PLACES, "params": {"k": 3, **given}})
    params = ProtectedGeneralizationParams.checked(asked.parameters)
    assert (params.time_interval_s, params.time_strategy) == (interval, strategy)


def test_our_own_run_files_keep_our_defaults() -> None:
    asked = parts_of({"method": "protected-generalization", "input": "cabs.csv", "output": "out"})
    assert ProtectedGeneralizationParams.checked(asked.parameters).time_strategy == "same"


def test_names_match_without_case() -> None:
    params = {"K": 4, "Interval": 60, "Clustering_Method": {"Name": "SimpleMDAV", "Params": {}}}
    content = {"Method": "TimePartMicroaggregation", "Input_file": "a.csv", "OUTPUT_FOLDER": "o", "Params": params}
    asked = parts_of(content)
    assert asked.parameters["interval_s"] == 60 and asked.parameters["k"] == 4 and asked.data == "a.csv"
    asked = parts_of({"method": "SwapLocations2012", **PLACES, "params": {"r_t": 5, "R_S": 7}})
    assert asked.parameters == {"time_threshold_s": 5, "space_threshold_m": 7}
    heat = task("analyze", {"METHOD": "QuadTreeHeatMap", **PLACES, "params": {"Min_K": 5}})
    assert heat.values == {"min_k": 5}
    places = {"Original_dataset": "a", "Anonymized_dataset": "b"}
    measured = task("measure", {**places, "Measures": [{"Name": "PropensityScore", "Params": {"Tiles_Size": 300}}]})
    assert measured.values["measures"] == ["propensity-score:tile_m=300"]
    filtering = task("filter", {"Input_filename": "a", "Methods": [{"Min_Locations": 5}]})
    assert filtering.values["filters"] == [{"min_locations": 5}]
    with pytest.raises(ParameterError, match="differ only in case"):
        parts_of({"method": "SimpleGeneralization", **PLACES, "params": {"tile_size": 5, "Tile_size": 6}})


def test_routes_take_files_from_the_form_and_keep_the_name_that_was_asked_for() -> None:
    run = {"method": "SimpleGeneralization", **PLACES, "params": {"Tiles_filename": "/home/x/tiles.geojson"}}
    with pytest.raises(ParameterError, match="tiles_filename"):
        _anonymize(run, {"input_dataset": "a.csv"})
    name, values = _anonymize(run, {"input_dataset": "a.csv", "tiles_filename": "tiles.geojson"})
    assert name == "simple-generalization" and "zones" not in values
    heat = {"method": "QuadTreeHeatMap", **PLACES, "main_output_file": "C:\\maps\\my_map.json"}
    assert _analyze(heat, {})[1] == {"format": "geojson", "result_name": "my_map.json"}
    filtering = {"input_filename": "a", "output_filename": "/elsewhere/kept.parquet", "methods": [{"min_locations": 5}]}
    assert _filter(filtering, {})[1] == {
        "filters": [{"min_locations": 5}],
        "format": "parquet",
        "result_name": "kept.parquet",
    }
    asked = {"measures": [{"name": "TrajectoriesRemoved"}], "main_output_file": "lost.json", "pairing": "kept.csv"}
    with pytest.raises(ParameterError, match="pairing"):
        _measure(asked, {})
    assert _measure(asked, {"pairing": "kept.csv"})[1]["result_name"] == "lost.json"
