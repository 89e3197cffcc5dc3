"""mdl-anonymizer's files as they are: runs, analyses and measures, with its names turned into ours."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.study import Study
from crowdveil.errors import ParameterError
from crowdveil.measures.base import Asked
from crowdveil.method import Method
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_aggregation, find_distance, find_measures, find_method
from crowdveil.report.measures import asked_for
from crowdveil.run.pipeline import Request
from crowdveil.runfiles.common import AnalysisRequest, check_seed, known_only, load, need, tables

MDL_KEYS = ("method", "input_file", "output_folder", "main_output_file", "params")
MDL_MEASURE_KEYS = ("original_dataset", "anonymized_dataset", "output_folder", "main_output_file", "measures")
MDL_METHODS = (
    "SimpleGeneralization", "ProtectedGeneralization", "Microaggregation", "TimePartMicroaggregation",
    "SwapAllLocations", "SwapLocations", "SwapMob",
)  # fmt: skip
MDL_MDAV = ("microaggregation", "time-partitioned-microaggregation")
MDL_FIXED = {
    "clustering_method": "SimpleMDAV",
    "clustering_method.trajectory_distance": "Martinez2021",
    "clustering_method.aggregation_method": "Mean_trajectory",
}
"""Parts that ours has one of, unless a method has a parameter for it."""


def run_of_mdl(path: Path, content: dict[str, Any], *, overwrite: bool) -> Request:
    """A run. Each gets a folder of its own in `output_folder`, named after its main output file."""
    known_only(path, content, MDL_KEYS)
    method = _mdl_method(path, need(path, content, "method"))
    source = Path(need(path, content, "input_file"))
    name = content.get("main_output_file") or f"{source.stem}_anonymized.csv"
    if not isinstance(name, str) or Path(name).name != name or Path(name).suffix not in (".csv", ".parquet"):
        raise ParameterError(path, "main_output_file must be a plain name that ends in .csv or .parquet.")
    values = content.get("params") or {}
    if not isinstance(values, dict):
        raise ParameterError(path, "params must be an object of names and values.")
    parameters, reading, seed = _sorted_out(method, _mdav_parts(path, method, _flat(path, values)))
    check_seed(path, seed)
    return Request(
        method.name,
        str(source),
        Path(need(path, content, "output_folder")) / Path(name).stem,
        parameters,
        reading,
        seed=seed,
        table_format="csv" if name.endswith(".csv") else "parquet",
        data_name=name,
        overwrite=overwrite,
    )


def _mdl_method(path: Path, name: str) -> Method:
    try:
        return find_method(name)
    except ParameterError:
        if name in MDL_METHODS:
            there = [a for m in all_methods().values() for a in m.aliases if a in MDL_METHODS]
            raise ParameterError(
                path, f"the method {name} of mdl-anonymizer is not there yet; there so far: {', '.join(there)}."
            ) from None
        raise


def _flat(path: Path, values: dict[str, Any], inside: str = "") -> dict[str, Any]:
    """mdl-anonymizer names a part of a method by an object {name, params}: here it is the name of the part, and its parameters
    with the part before them, as in `clustering_method.trajectory_distance`. What is null is not given.
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and "name" in value:
            known_only(path, value, ("name", "params"))
            inner = value.get("params") or {}
            if not isinstance(inner, dict):
                raise ParameterError(path, f"params of {inside}{name} must be an object of names and values.")
            flat |= {inside + name: value["name"], **_flat(path, inner, f"{inside}{name}.")}
        elif value is not None:
            flat[inside + name] = value
    return flat


def _mdav_parts(path: Path, method: Method, flat: dict[str, Any]) -> dict[str, Any]:
    """The parts of microaggregation: names of distances and aggregations to ours; what ours does anyway is left out."""
    if method.name not in MDL_MDAV:
        return flat
    distance, weight = "clustering_method.trajectory_distance", "clustering_method.trajectory_distance.p_lambda"
    aliased = [theirs for theirs, _ in method.parameter_aliases]
    fixed = {part: name for part, name in MDL_FIXED.items() if part not in aliased}
    for part in fixed.keys() & flat.keys():
        if flat[part] != fixed[part]:
            raise ParameterError(path, f"{part}: wanted {fixed[part]} with {method.name}, but got {flat[part]!r}.")
    if flat.get("aggregation_method.p_lambda", flat.get(weight)) != flat.get(weight):
        raise ParameterError(path, "aggregation_method.p_lambda: wanted the p_lambda of the distance; ours has one.")
    left_out = {*fixed, "aggregation_method.p_lambda"}
    ours = {name: value for name, value in flat.items() if name not in left_out}
    if distance in ours:
        ours[distance] = find_distance(str(ours[distance])).name
    if "aggregation_method" in ours:
        ours["aggregation_method"] = find_aggregation(str(ours["aggregation_method"])).name
    # Theirs computes λ where it is not given, whatever our default is.
    return {weight: "document", **ours}


def analysis_of_mdl(path: Path, content: dict[str, Any], analysis: Analysis, *, overwrite: bool) -> AnalysisRequest:
    """An analysis: GeoJSON under the name that it gives, in the folder that it names."""
    if analysis.takes is Study:
        raise ParameterError(path, f"{analysis.name} reads a release; wanted a run file with input and output.")
    source = Path(need(path, content, "input_file"))
    name = content.get("main_output_file") or f"{source.stem}_{analysis.name}.geojson"
    if not isinstance(name, str) or Path(name).name != name or not Path(name).suffix:
        raise ParameterError(path, "main_output_file must be a plain name with an ending, such as map.json.")
    values, ours = tables(path, content, "params"), dict(analysis.parameter_aliases)
    options = {ours.get(n, n): value for n, value in values.items() if value is not None}
    output = Path(need(path, content, "output_folder")) / name
    return AnalysisRequest(analysis.name, str(source), str(output), options, overwrite)


@dataclass(frozen=True)
class MeasureFile:
    """What a file of measures asks for: the original, what was published, the measures, and where to write, if anywhere."""

    original: str
    release: str
    measures: tuple[Asked, ...]
    output: Path | None


def read_measure_file(path: Path) -> MeasureFile:
    """Read mdl-anonymizer's file of measures; measures and parameters may have our names too."""
    return measures_of(path, load(path))


def measures_of(path: Path, content: dict[str, Any]) -> MeasureFile:
    """What is asked for in the content of a file of measures; `path` is what messages call it."""
    known_only(path, content, MDL_MEASURE_KEYS)
    listed = need(path, content, "measures", list)
    if not all(isinstance(entry, dict) for entry in listed):
        raise ParameterError(path, 'measures must be a list of objects such as {"name": "Rsme", "params": {}}.')
    name = content.get("main_output_file")
    if name is not None and (not isinstance(name, str) or Path(name).name != name or Path(name).suffix != ".json"):
        raise ParameterError(path, "main_output_file must be a plain name that ends in .json.")
    folder = content.get("output_folder") or "."
    if not isinstance(folder, str):
        raise ParameterError(path, "output_folder must be text.")
    return MeasureFile(
        need(path, content, "original_dataset"),
        need(path, content, "anonymized_dataset"),
        tuple(asked for entry in listed for asked in _mdl_measure(path, entry)),
        None if name is None else Path(folder) / name,
    )


def _mdl_measure(path: Path, entry: dict[str, Any]) -> list[Asked]:
    """One entry of the list: the measures of a name, with parameters under our names."""
    known_only(path, entry, ("name", "params"))
    name, values = need(path, entry, "name"), entry.get("params") or {}
    if not isinstance(values, dict):
        raise ParameterError(path, f"params of {name} must be an object of names and values.")
    ours = {theirs: our for measure in find_measures(name) for theirs, our in measure.parameter_aliases}
    given = {ours.get(key, key): value for key, value in _flat(path, values).items()}
    given.pop("", None)  # what ours does anyway
    if isinstance(given.get("distance"), str):
        given["distance"] = find_distance(given["distance"]).name
    return asked_for(name, given)


def _times(value: Any, factor: float | None) -> Any:
    """A number in our unit. What is none stays as it is, to be refused with the other parameters."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value * factor if factor is not None and number else value


def _sorted_out(method: Method, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], int | None]:
    """Foreign names to ours; parameters, options of reading, and the seed."""
    ours, factors = dict(method.parameter_aliases), dict(method.alias_factors)
    renamed = {ours.get(name, name): _times(value, factors.get(name)) for name, value in values.items()}
    seed = renamed.pop("seed", None)
    reading = {n: v for n, v in renamed.items() if n in READINGS[method.takes].model_fields}
    return {n: v for n, v in renamed.items() if n not in reading}, reading, seed
