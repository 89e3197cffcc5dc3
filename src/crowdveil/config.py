"""Run files: TOML or JSON of ours, and mdl-anonymizer's JSON as it is, to one request.

Paths in a run file are taken as the shell would take them, from the current folder.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.method import Method
from crowdveil.pipeline import Request
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_aggregation, find_distance, find_method

KEYS = ("method", "input", "output", "parameters", "reading", "seed", "format", "overwrite", "resume")
MDL_KEYS = ("method", "input_file", "output_folder", "main_output_file", "params")
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


def read_run_file(path: Path, *, overwrite: bool = False) -> Request:
    """Read a run file."""
    return request_of(path, load(path), overwrite=overwrite)


def request_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> Request:
    """The request in the content of a run file; `path` is what messages call it."""
    if "input_file" in content:
        return _from_mdl(path, content, overwrite)
    return _from_ours(path, content, overwrite)


def load(path: Path) -> dict[str, Any]:
    """The content of a TOML or JSON file."""
    if not path.is_file():
        raise ParameterError(f"{path}: there is no such run file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, OSError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise ParameterError(f"{path}: the run file is not valid {kind}{where}; mend it.") from None
    if not isinstance(content, dict):
        raise ParameterError(f"{path}: wanted a run file with names and values, but it holds something else.")
    return content


def known_only(path: Path, content: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse names that mean nothing, so that a slip of the pen is not passed over."""
    unknown = [key for key in content if key not in known]
    if unknown:
        raise ParameterError(f"{path}: {unknown[0]} means nothing here; known are {', '.join(known)}.")


def need(path: Path, content: dict[str, Any], key: str, kind: type = str) -> Any:
    """A value that must be there, of a type."""
    value = content.get(key)
    if not isinstance(value, kind) or not value:
        raise ParameterError(
            f"{path}: wanted {key} ({'text' if kind is str else kind.__name__}); add it to the run file."
        )
    return value


def _from_ours(path: Path, content: dict[str, Any], overwrite: bool) -> Request:
    known_only(path, content, KEYS)
    parameters, reading = content.get("parameters", {}), content.get("reading", {})
    if not isinstance(parameters, dict) or not isinstance(reading, dict):
        raise ParameterError(f"{path}: parameters and reading must be tables of names and values.")
    table_format, seed = content.get("format", "parquet"), content.get("seed", 0)
    if table_format not in ("parquet", "csv"):
        raise ParameterError(f"{path}: format must be parquet or csv.")
    if not isinstance(content.get("overwrite", False), bool):
        raise ParameterError(f"{path}: overwrite must be true or false.")
    _check_seed(path, seed)
    return Request(
        need(path, content, "method"),
        need(path, content, "input"),
        Path(need(path, content, "output")),
        parameters,
        reading,
        seed=seed,
        table_format=table_format,
        overwrite=overwrite or content.get("overwrite", False),
        resume=Path(need(path, content, "resume")) if "resume" in content else None,
    )


def _check_seed(path: Path, seed: Any) -> None:
    if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
        raise ParameterError(f"{path}: seed must be a whole number from 0.")


def _from_mdl(path: Path, content: dict[str, Any], overwrite: bool) -> Request:
    """mdl-anonymizer's file. Each run gets a folder of its own in `output_folder`, named after its main output file."""
    known_only(path, content, MDL_KEYS)
    method = _mdl_method(path, need(path, content, "method"))
    source = Path(need(path, content, "input_file"))
    name = content.get("main_output_file") or f"{source.stem}_anonymized.csv"
    if not isinstance(name, str) or Path(name).name != name or Path(name).suffix not in (".csv", ".parquet"):
        raise ParameterError(f"{path}: main_output_file must be a plain name that ends in .csv or .parquet.")
    values = content.get("params") or {}
    if not isinstance(values, dict):
        raise ParameterError(f"{path}: params must be an object of names and values.")
    parameters, reading, seed = _sorted_out(method, _mdav_parts(path, method, _flat(path, values)))
    _check_seed(path, seed)
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
                f"{path}: the method {name} of mdl-anonymizer is not there yet; there so far: {', '.join(there)}."
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
                raise ParameterError(f"{path}: params of {inside}{name} must be an object of names and values.")
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
            raise ParameterError(f"{path}: {part}: wanted {fixed[part]} with {method.name}, but got {flat[part]!r}.")
    if flat.get("aggregation_method.p_lambda", flat.get(weight)) != flat.get(weight):
        raise ParameterError(f"{path}: aggregation_method.p_lambda: wanted the p_lambda of the distance; ours has one.")
    left_out = {*fixed, "aggregation_method.p_lambda"}
    ours = {name: value for name, value in flat.items() if name not in left_out}
    if distance in ours:
        ours[distance] = find_distance(str(ours[distance])).name
    if "aggregation_method" in ours:
        ours["aggregation_method"] = find_aggregation(str(ours["aggregation_method"])).name
    # Theirs computes λ where it is not given, whatever our default is.
    return {weight: "document", **ours}


def _times(value: Any, factor: float | None) -> Any:
    """A number in our unit. What is none stays as it is, to be refused with the other parameters."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value * factor if factor is not None and number else value


def _sorted_out(method: Method, values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Foreign names to ours; parameters, options of reading, and the seed."""
    ours, factors = dict(method.parameter_aliases), dict(method.alias_factors)
    renamed = {ours.get(name, name): _times(value, factors.get(name)) for name, value in values.items()}
    seed = renamed.pop("seed", 0)
    reading = {n: v for n, v in renamed.items() if n in READINGS[method.takes].model_fields}
    return {n: v for n, v in renamed.items() if n not in reading}, reading, seed
