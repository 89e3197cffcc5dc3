"""Read our run files to requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.registry import find_analysis
from crowdveil.run.pipeline import Request
from crowdveil.runfiles.common import AnalysisRequest, check_seed, known_only, need, tables, yes_or_no

KEYS = (
    "method", "input", "output", "parameters", "reading", "seed", "format", "overwrite", "resume", "pairing", "attack",
    "report", "private_report",
)  # fmt: skip
ANALYSIS_KEYS = ("method", "input", "output", "parameters", "reading", "overwrite")


def analysis_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> AnalysisRequest:
    """Return the analysis in the content of a run file; messages call the file `path`."""
    known_only(path, content, ANALYSIS_KEYS)
    analysis = find_analysis(need(path, content, "method"))
    options = tables(path, content, "parameters", "reading")
    replace = yes_or_no(path, content, "overwrite")
    output = need(path, content, "output") if "output" in content else None
    return AnalysisRequest(analysis.name, need(path, content, "input"), output, options, overwrite or replace)


def request_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> Request:
    """Return the run in the content of a run file; messages call the file `path`."""
    known_only(path, content, KEYS)
    parameters, reading = content.get("parameters", {}), content.get("reading", {})
    if not isinstance(parameters, dict) or not isinstance(reading, dict):
        raise ParameterError(f"{path}: parameters and reading must be tables of names and values.")
    table_format, seed = content.get("format", "parquet"), content.get("seed")
    if table_format not in ("parquet", "csv"):
        raise ParameterError(f"{path}: format must be parquet or csv.")
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
