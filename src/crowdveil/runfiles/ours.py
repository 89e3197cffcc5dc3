"""Run files, ours or mdl-anonymizer's, to one request.

Paths in a run file are taken as the shell would take them, from the current folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.registry import find_analysis
from crowdveil.run.options import RunOptions
from crowdveil.run.pipeline import Request
from crowdveil.runfiles.common import AnalysisRequest, checked_options, known_only, load, need, tables
from crowdveil.runfiles.mobidatalab import MDL_KEYS, analysis_of_mdl, run_of_mdl

KEYS = ("method", "input", "output", "parameters", "reading", *RunOptions.model_fields)
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
    named = {name: content[name] for name in ("overwrite",) if name in content}
    replace = checked_options(path, named, overwrite=overwrite).get("overwrite", False)
    output = need(path, content, "output") if "output" in content else None
    return AnalysisRequest(analysis.name, need(path, content, "input"), output, options, replace)


def _from_ours(path: Path, content: dict[str, Any], overwrite: bool) -> Request:
    known_only(path, content, KEYS)
    options = {name: content[name] for name in RunOptions.model_fields if name in content}
    method, source, output = (need(path, content, key) for key in ("method", "input", "output"))
    parameters, reading = tables(path, content, "parameters"), tables(path, content, "reading")
    return Request(method, source, output, parameters, reading, checked_options(path, options, overwrite=overwrite))
