"""Read our run files to requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.registry import find_analysis
from crowdveil.run.options import RunOptions
from crowdveil.run.pipeline import Request
from crowdveil.runfiles.common import AnalysisRequest, checked_options, known_only, need, tables

KEYS = ("method", "input", "output", "parameters", "reading", *RunOptions.model_fields)
ANALYSIS_KEYS = ("method", "input", "output", "parameters", "reading", "overwrite", "ledger")


def analysis_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> AnalysisRequest:
    """Return the analysis in the content of a run file; messages call the file `path`."""
    known_only(path, content, ANALYSIS_KEYS)
    analysis = find_analysis(need(path, content, "method"))
    options = tables(path, content, "parameters", "reading")
    named = {name: content[name] for name in content if name in ("overwrite", "ledger")}
    checked = checked_options(path, named, overwrite=overwrite)
    replace = checked.pop("overwrite", False)
    output = need(path, content, "output") if "output" in content else None
    return AnalysisRequest(analysis.name, need(path, content, "input"), output, options | checked, replace)


def request_of(path: Path, content: dict[str, Any], *, overwrite: bool = False) -> Request:
    """Return the run in the content of a run file; messages call the file `path`."""
    known_only(path, content, KEYS)
    options = {name: content[name] for name in RunOptions.model_fields if name in content}
    method, source, output = (need(path, content, key) for key in ("method", "input", "output"))
    parameters, reading = tables(path, content, "parameters"), tables(path, content, "reading")
    return Request(method, source, output, parameters, reading, checked_options(path, options, overwrite=overwrite))
