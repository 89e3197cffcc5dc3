"""Run files of anonymization as their parts: the method's parameters, the input options, and those of the run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from crowdveil.compat.mobidatalab.runfiles import task_of
from crowdveil.reading import READINGS
from crowdveil.registry import find_method
from crowdveil.run.options import RunOptions
from crowdveil.verbs.base import Task
from crowdveil.verbs.run_file import load
from crowdveil.verbs.table import VERBS


def task(verb: str, content: Any, path: Path | str = "run.json") -> Task:
    """Return the task in the content of a run file."""
    return task_of(VERBS[verb], Path(path), content)


def parts_of(content: Any, path: Path | str = "run.json") -> Any:
    """Return the parts of a run file of anonymization."""
    found = task("anonymize", content, path)
    values = dict(found.values)
    reading = {n: values.pop(n) for n in list(values) if n in READINGS[find_method(found.name).takes].model_fields}
    options = {n: values.pop(n) for n in list(values) if n in RunOptions.model_fields}
    return SimpleNamespace(
        method=found.name, data=found.files["data"], output=found.output, overwrite=found.overwrite,
        data_name=values.pop("data_name", None), reading=reading, options=options, parameters=values,
    )  # fmt: skip


def read_run_file(path: Path) -> Any:
    """Return the parts of a run file."""
    return parts_of(load(path), path)


def write_and_read(path: Path, content: Any) -> Any:
    """Write a run file, and return its parts."""
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return read_run_file(path)
