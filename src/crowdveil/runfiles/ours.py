"""Read our run files: one task of a verb, with the names that its record has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.runfiles.common import known_only, need, tables
from crowdveil.verbs.base import Task, Verb, values_of

KEYS = ("method", "input", "output", "overwrite", "parameters", "reading")


def task_of(verb: Verb, path: Path, content: dict[str, Any]) -> Task:
    """Return the task in the content of a run file; messages call the file `path`.

    Files are named by their role, the first one also by `input`; options of the run stand beside them.
    """
    name = verb.find(need(path, content, "method")) if verb.group else verb.names()[0]
    roles, local = [file.role for file in verb.files(name)], verb.local(name)
    known_only(path, content, (*KEYS, *roles, *(option for model in local for option in model.model_fields)))
    files = {role: need(path, content, role) for role in roles if role in content}
    if roles[0] not in files:
        files[roles[0]] = need(path, content, "input")
    run = checked(path, values_of(content, *local), *local)
    overwrite = run.pop("overwrite", content.get("overwrite", False))
    if not isinstance(overwrite, bool):
        raise ParameterError(path, "overwrite: expected true or false. Change it.")
    output = need(path, content, "output") if "output" in content or verb.output(name).required else None
    return Task(name, tables(path, content, "parameters", "reading") | run, files, output, overwrite=overwrite)


def checked(path: Path, options: dict[str, Any], *models: Any) -> dict[str, Any]:
    """Return options of a run file; raise where one is wrong."""
    try:
        for model in models:
            model.checked(values_of(options, model))
    except ParameterError as error:
        raise ParameterError(path, f"{error}") from None
    return options
