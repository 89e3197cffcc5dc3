"""Bad run files: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bad_input import (
    POINTS,
    Command,
    refused,
)

OURS = {"method": "simple-generalization", "input": "points.csv", "output": "out"}
MDL = {"method": "SimpleGeneralization", "input_file": "points.csv", "output_folder": "."}
RUN_FILES = {
    "no JSON": ("run.json", "{", ("run.json", "not valid JSON", "line 1")),
    "no TOML": ("run.toml", "a = ", ("run.toml", "not valid TOML")),
    "not UTF-8": ("run.json", '{"method": "é"}'.encode("latin-1"), ("run.json", "not valid")),
    "a list": ("run.json", "[1]", ("run.json",)),
    "empty": ("run.json", "", ("run.json",)),
    "unknown key": ("run.json", {**OURS, "metod": 1}, ("metod", "Known are")),
    "unknown key of mdl": ("run.json", {**MDL, "outputs": 1}, ("outputs", "Known are")),
    "unknown parameter": ("run.json", {**OURS, "parameters": {"tile": 1}}, ("tile", "tile_size_m")),
    "unknown parameter of mdl": ("run.json", {**MDL, "params": {"tile": 1}}, ("tile", "tile_size_m")),
    "unknown reading": ("run.json", {**OURS, "reading": {"lattitude": "a"}}, ("lattitude", "lat")),
    "parameters a list": ("run.json", {**OURS, "parameters": [1]}, ("parameters",)),
    "parameter of a wrong type": ("run.json", {**OURS, "parameters": {"tile_size_m": "big"}}, ("tile-size-m",)),
    "parameter infinite": ("run.json", '{"method": "simple-generalization", "input": "points.csv", "output": "out",'
                           ' "parameters": {"tile_size_m": Infinity}}', ("tile-size-m",)),
    "no method": ("run.json", {"input": "points.csv", "output": "out"}, ("method",)),
    "method a number": ("run.json", {**OURS, "method": 3}, ("method",)),
    "unknown method": ("run.json", {**OURS, "method": "magic"}, ("magic", "suppression")),
    "method of mdl to come": ("run.json", {**MDL, "method": "Nonsense"}, ("Nonsense",)),
    "no input": ("run.json", {"method": "suppression", "output": "out"}, ("input",)),
    "no output": ("run.json", {"method": "suppression", "input": "points.csv"}, ("output",)),
    "seed text": ("run.json", {**OURS, "seed": "x"}, ("seed",)),
    "seed true": ("run.json", {**OURS, "seed": True}, ("seed",)),
    "seed of mdl text": ("run.json", {**MDL, "params": {"seed": "x"}}, ("seed",)),
    "seed of mdl below zero": ("run.json", {**MDL, "params": {"seed": -4}}, ("seed",)),
    "format": ("run.json", {**OURS, "format": "xls"}, ("format", "parquet")),
    "overwrite text": ("run.json", {**OURS, "overwrite": "yes"}, ("overwrite",)),
    "main output elsewhere": ("run.json", {**MDL, "main_output_file": "../x.csv"}, ("main_output_file",)),
    "main output a number": ("run.json", {**MDL, "main_output_file": 5}, ("main_output_file",)),
    "params text": ("run.json", {**MDL, "params": "x"}, ("params",)),
    "zones a number": ("run.json", {**OURS, "reading": {"zones": 5}}, ("path",)),
    "column a number": ("run.json", {**OURS, "reading": {"lat": 5}}, ("lat",)),
}  # fmt: skip


@pytest.mark.parametrize("name", RUN_FILES)
def test_a_bad_run_file_is_refused(name: str, here: Path, command: Command) -> None:
    file, content, says = RUN_FILES[name]
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    (here / file).write_bytes(text.encode() if isinstance(text, str) else text)
    (here / "points.csv").write_text(POINTS)
    sentence = refused(command, here, "anonymize", "-f", file)
    for part in says:
        assert part in sentence


def test_a_missing_run_file_is_refused(here: Path, command: Command) -> None:
    assert "no such run file" in refused(command, here, "anonymize", "-f", "nowhere.json")


FILTER_FILES = {
    "unknown key": {"input_filename": "points.csv", "metods": []},
    "no methods": {"input_filename": "points.csv"},
    "methods text": {"input_filename": "points.csv", "methods": "min_locations"},
    "methods of text": {"input_filename": "points.csv", "methods": ["min_locations"]},
    "unknown filter": {"input_filename": "points.csv", "methods": [{"min_location": 5}]},
    "filter value": {"input_filename": "points.csv", "methods": [{"min_locations": "many"}]},
    "filter value null": {"input_filename": "points.csv", "methods": [{"min_locations": None}]},
    "output a number": {"input_filename": "points.csv", "output_filename": 5, "methods": [{"min_locations": 1}]},
}


@pytest.mark.parametrize("name", FILTER_FILES)
def test_a_bad_run_file_of_filters_is_refused(name: str, here: Path, command: Command) -> None:
    (here / "run.json").write_text(json.dumps(FILTER_FILES[name]))
    (here / "points.csv").write_text(POINTS)
    refused(command, here, "filter", "-f", "run.json")
