"""Run files, ours or mdl-anonymizer's, to one request.

Paths in a run file are taken as the shell would take them, from the current folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.registry import find_analysis
from crowdveil.run.pipeline import Request
from crowdveil.runfiles.common import AnalysisRequest, check_seed, known_only, load, need, tables, yes_or_no
from crowdveil.runfiles.mobidatalab import MDL_KEYS, analysis_of_mdl, run_of_mdl

KEYS = (
    "method", "input", "output", "parameters", "reading", "seed", "format", "overwrite", "resume", "pairing", "attack",
    "report", "private_report",
)  # fmt: skip
ANALYSIS_KEYS = ("method", "input", "output", "parameters", "reading", "overwrite")


def read_run_file(path: Path, *, overwrite: bool = False) -> Request:
    """Read a run file."""
    return request_of(path, load(path), overwrite=overwrite)


def request_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> Request:
    """The request in the content of a run file; `path` is what messages call it."""
    if "input_file" in content:
        return run_of_mdl(path, content, overwrite=overwrite)
    return _from_ours(path, content, overwrite)


def read_analysis_file(path: Path, *, overwrite: bool = False) -> AnalysisRequest:
    """Read a run file of an analysis."""
    return analysis_of(path, load(path), overwrite=overwrite)


def analysis_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> AnalysisRequest:
    """The analysis in the content of a run file; `path` is what messages call it."""
    theirs = "input_file" in content
    known_only(path, content, MDL_KEYS if theirs else ANALYSIS_KEYS)
    analysis = find_analysis(need(path, content, "method"))
    if theirs:
        return analysis_of_mdl(path, content, analysis, overwrite=overwrite)
    options = tables(path, content, "parameters", "reading")
    replace = yes_or_no(path, content, "overwrite")
    output = need(path, content, "output") if "output" in content else None
    return AnalysisRequest(analysis.name, need(path, content, "input"), output, options, overwrite or replace)


def _from_ours(path: Path, content: dict[str, Any], overwrite: bool) -> Request:
    known_only(path, content, KEYS)
    parameters, reading = content.get("parameters", {}), content.get("reading", {})
    if not isinstance(parameters, dict) or not isinstance(reading, dict):
        raise ParameterError(path, "parameters and reading must be tables of names and values.")
    table_format, seed = content.get("format", "parquet"), content.get("seed")
    if table_format not in ("parquet", "csv"):
        raise ParameterError(path, "format must be parquet or csv.")
    replace = yes_or_no(path, content, "overwrite")
    check_seed(path, seed)
    return Request(
        need(path, content, "method"),
        need(path, content, "input"),
        Path(need(path, content, "output")),
        parameters,
        reading,
        seed=seed,
        table_format=table_format,
        overwrite=overwrite or replace,
        resume=Path(need(path, content, "resume")) if "resume" in content else None,
        pairing=Path(need(path, content, "pairing")) if "pairing" in content else None,
        attack=yes_or_no(path, content, "attack", default=True),
        report=yes_or_no(path, content, "report", default=True),
        private_report=Path(need(path, content, "private_report")) if "private_report" in content else None,
    )
