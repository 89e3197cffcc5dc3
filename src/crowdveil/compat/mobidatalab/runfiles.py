"""Read run files: ours, and those of mdl-anonymizer for runs, analyses, measures and filters, translated to our names.

A file that has `input_file`, `original_dataset` or `methods` is mdl-anonymizer's. Paths are relative to the current folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.analysis.study import Study
from crowdveil.comparison.requested_measures import ALL, asked_for
from crowdveil.compat.mobidatalab.names import ANALYSES, MEASURES, METHODS, NONE
from crowdveil.errors import ParameterError
from crowdveil.measures.base import MeasureRequest
from crowdveil.methods.base import Method
from crowdveil.registry import find_aggregation, find_analysis, find_distance, find_measures, find_method
from crowdveil.run.options import RunOptions
from crowdveil.verbs import run_file
from crowdveil.verbs.base import Task, Verb, values_of
from crowdveil.verbs.filter import TRAJECTORIES
from crowdveil.verbs.run_file import known_only, need

KEYS = ("method", "input_file", "output_folder", "main_output_file", "params")
RUN_KEYS = (*KEYS, "pairing")
MEASURE_KEYS = ("original_dataset", "anonymized_dataset", "output_folder", "main_output_file", "measures", "pairing",
                "paired_by_id")  # fmt: skip
TILES, PAIRING = "tiles_filename", "pairing"
"""Further files of a run file; in the API, fields of the form."""
FILTER_KEYS = ("input_filename", "original_dataset", "output_filename", "methods")
MDAV = ("microaggregation", "time-partitioned-microaggregation")
FIXED = {"clustering_method.trajectory_distance": "Martinez2021"}
"""Parts of methods that have a single value here, unless the method has a parameter for them."""
DEFAULT_CLUSTERING = "SimpleMDAV"
"""The only clustering of mdl-anonymizer, our default; others have their own names."""


def task_of(verb: Verb, path: Path, content: dict[str, Any]) -> Task:
    """Return the task in the content of a run file; messages call the file `path`."""
    mark, read = THEIRS[verb.verb]
    if any(key.lower() == mark for key in content):
        return read(path, lower_keys(path, content))
    return run_file.task_of(verb, path, content)


def lower_keys(path: Path, content: dict[str, Any]) -> dict[str, Any]:
    """Return an object of a run file with lower-case names: the documentation spells some of them in several ways."""
    found = {key.lower(): value for key, value in content.items()}
    if len(found) < len(content):
        raise ParameterError(path, "Expected each name once, got two that differ only in case. Remove one.")
    return found


def _run_of(path: Path, content: dict[str, Any]) -> Task:
    """Return a run with a folder in `output_folder` that is named after its main output file."""
    known_only(path, content, RUN_KEYS)
    method = find_method(need(path, content, "method"))
    source = Path(need(path, content, "input_file"))
    name = content.get("main_output_file") or f"{source.stem}_anonymized.csv"
    if not isinstance(name, str) or Path(name).name != name or Path(name).suffix not in (".csv", ".parquet"):
        raise ParameterError(path, "main_output_file must be a plain name that ends in .csv or .parquet.")
    given = _flatten(path, _params_of(path, content, "params"))
    values = METHODS.get(method.name, NONE).translate(_mdav_parts(path, method, given))
    if content.get("pairing") is not None:
        values["pairing"] = need(path, content, "pairing")
    values |= {"format": "csv" if name.endswith(".csv") else "parquet", "data_name": name}
    run_file.checked(path, values_of(values, RunOptions), RunOptions)
    overwrite = values.pop("overwrite", False)
    output = Path(need(path, content, "output_folder")) / Path(name).stem
    return Task(method.name, values, {"data": str(source)}, output, overwrite=overwrite)


def _params_of(path: Path, content: dict[str, Any], called: str) -> dict[str, Any]:
    """Return the parameters of an object of a run file; messages call them `called`."""
    values = content.get("params") or {}
    if not isinstance(values, dict):
        raise ParameterError(path, f"{called} must be an object of names and values.")
    return values


def _flatten(path: Path, values: dict[str, Any], inside: str = "") -> dict[str, Any]:
    """Return values by dotted names, without null values.

    A part of a method is an object {name, params} in mdl-anonymizer. Here it becomes the name of the part and its parameters
    with the part as a prefix, as in `clustering_method.trajectory_distance`.
    """
    flat: dict[str, Any] = {}
    for name, value in lower_keys(path, values).items():
        if isinstance(value, dict):
            value = lower_keys(path, value)
        if isinstance(value, dict) and "name" in value:
            known_only(path, value, ("name", "params"))
            inner = _params_of(path, value, f"params of {inside}{name}")
            flat |= {inside + name: value["name"], **_flatten(path, inner, f"{inside}{name}.")}
        elif value is not None:
            flat[inside + name] = value
    return flat


def _mdav_parts(path: Path, method: Method, flat: dict[str, Any]) -> dict[str, Any]:
    """Translate the distance and the aggregation of microaggregation, and leave out parts with a single value here."""
    if method.name not in MDAV:
        return flat
    distance, weight = "clustering_method.trajectory_distance", "clustering_method.trajectory_distance.p_lambda"
    fixed = {part: name for part, name in FIXED.items() if part not in METHODS[method.name].parameters}
    for part in fixed.keys() & flat.keys():
        if flat[part] != fixed[part]:
            raise ParameterError(path, f"{part}: expected {fixed[part]} with {method.name}, got {flat[part]!r}.")
    kept = {name: value for name, value in flat.items() if name not in fixed}
    clustering = kept.pop("clustering_method", DEFAULT_CLUSTERING)
    if clustering != DEFAULT_CLUSTERING:
        kept["clustering"] = clustering  # checked with the parameters of the method
    if distance in kept:
        kept[distance] = find_distance(str(kept[distance])).name
    for part in ("aggregation_method", "clustering_method.aggregation_method"):
        if part in kept:
            kept[part] = find_aggregation(str(kept[part])).name
    # mdl-anonymizer computes a missing λ, whatever our default is.
    return {weight: "mobidatalab", **kept}


def _analysis_of(path: Path, content: dict[str, Any]) -> Task:
    """Return an analysis that writes GeoJSON under `main_output_file` in `output_folder`."""
    known_only(path, content, KEYS)
    analysis = find_analysis(need(path, content, "method"))
    if analysis.takes is Study:
        raise ParameterError(
            path, f"Expected a run file with input and output, since {analysis.name} reads a release. Change it."
        )
    source = Path(need(path, content, "input_file"))
    name = content.get("main_output_file") or f"{source.stem}_{analysis.name}.geojson"
    if not isinstance(name, str) or Path(name).name != name or not Path(name).suffix:
        raise ParameterError(path, "main_output_file must be a plain name with an ending, such as map.json.")
    values = _flatten(path, _params_of(path, content, "params"))
    options = ANALYSES.get(analysis.name, NONE).translate(values)
    output = Path(need(path, content, "output_folder")) / name
    return Task(analysis.name, options, {"data": str(source)}, output)


def _measurement_of(path: Path, content: dict[str, Any]) -> Task:
    """Return the measures in mdl-anonymizer's file, which may also have our names."""
    known_only(path, content, MEASURE_KEYS)
    listed = need(path, content, "measures", list)
    if not all(isinstance(entry, dict) for entry in listed):
        raise ParameterError(path, 'measures must be a list of objects such as {"name": "Rsme", "params": {}}.')
    name = content.get("main_output_file")
    if name is not None and (not isinstance(name, str) or Path(name).name != name or Path(name).suffix != ".json"):
        raise ParameterError(path, "main_output_file must be a plain name that ends in .json.")
    folder = content.get("output_folder") or "."
    if not isinstance(folder, str):
        raise ParameterError(path, "output_folder must be text.")
    files = {"original": need(path, content, "original_dataset"), "release": need(path, content, "anonymized_dataset")}
    if content.get("pairing") is not None:
        files["pairing"] = need(path, content, "pairing")
    labels = [asked.label for entry in listed for asked in _measures_of(path, entry)]
    values: dict[str, Any] = {"measures": labels}
    if "paired_by_id" in content:
        values["paired_by_id"] = content["paired_by_id"]
        if not isinstance(values["paired_by_id"], bool):
            raise ParameterError(path, "paired_by_id must be true or false.")
    return Task(ALL, values, files, None if name is None else Path(folder) / name)


def _measures_of(path: Path, entry: dict[str, Any]) -> list[MeasureRequest]:
    """Return the measures of one entry of the list, with parameters under our names."""
    entry = lower_keys(path, entry)
    known_only(path, entry, ("name", "params"))
    name = need(path, entry, "name")
    values = _params_of(path, entry, f"params of {name}")
    # Measures with one name have the same parameters in mdl-anonymizer.
    given = MEASURES.get(find_measures(name)[0].name, NONE).translate(_flatten(path, values))
    if isinstance(given.get("distance"), str):
        given["distance"] = find_distance(given["distance"]).name
    return asked_for(name, given)


def filter_input(content: dict[str, Any]) -> str:
    """Return the key of the trajectories to filter, which differs between mdl-anonymizer's API and its local command."""
    return "original_dataset" if "original_dataset" in content else "input_filename"


def _filter_of(path: Path, content: dict[str, Any]) -> Task:
    """Return the filters of mdl-anonymizer's file, in their order."""
    known_only(path, content, FILTER_KEYS)
    source = need(path, content, filter_input(content))
    methods = need(path, content, "methods", list)
    if not all(isinstance(entry, dict) for entry in methods):
        raise ParameterError(path, 'methods must be a list of objects such as {"min_locations": 5}.')
    output = content.get("output_filename", "")
    if not isinstance(output, str):
        raise ParameterError(path, "output_filename must be text.")
    listed = [lower_keys(path, entry) for entry in methods]
    target = output or str(Path(source).with_name(f"filtered_{Path(source).name}"))
    return Task(TRAJECTORIES, {"filters": listed}, {"data": source}, target)


THEIRS = {
    "anonymize": ("input_file", _run_of),
    "analyze": ("input_file", _analysis_of),
    "measure": ("original_dataset", _measurement_of),
    "filter": ("methods", _filter_of),
}
"""For each verb, the key that identifies files of mdl-anonymizer, and their reader."""
