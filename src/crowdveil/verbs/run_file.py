"""Read run files: the task of a verb in TOML or JSON, with the names of its record."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError
from crowdveil.verbs.base import Task, Verb, values_of

KEYS = ("method", "input", "output", "overwrite", "parameters", "reading")


def load(path: Path) -> dict[str, Any]:
    """Return the content of a TOML or JSON file."""
    if not path.is_file():
        raise ParameterError(path, "there is no such run file. Check its name.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, OSError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise ParameterError(path, f"the run file is not valid {kind}{where}. Fix it.") from None
    if not isinstance(content, dict):
        raise ParameterError(path, "Expected a run file with names and values, got something else. Change it.")
    return content


def tables(path: Path, content: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return the names and values of the tables under some keys."""
    found: dict[str, Any] = {}
    for key in keys:
        inner = content.get(key) or {}
        if not isinstance(inner, dict):
            raise ParameterError(path, f"{key} must be a table of names and values.")
        found |= inner
    return found


def known_only(path: Path, content: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raise if there are unknown keys, such as a misspelled one."""
    unknown = [key for key in content if key not in known]
    if unknown:
        raise ParameterError(path, f"unknown key {unknown[0]}. Known are {', '.join(known)}.")


def need(path: Path, content: dict[str, Any], key: str, kind: type = str) -> Any:
    """Return a required value of a type."""
    value = content.get(key)
    if not isinstance(value, kind) or not value:
        raise ParameterError(
            path, f"Expected {key} ({'text' if kind is str else kind.__name__}). Add it to the run file."
        )
    return value


def task_of(verb: Verb, path: Path, content: dict[str, Any]) -> Task:
    """Return the task in the content of a run file; messages call the file `path`.

    Files have the names of their roles, the first one also `input`; options of the run are on the same level.
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
        raise ParameterError(path, "Expected true or false for overwrite, got something else. Change it.")
    output = need(path, content, "output") if "output" in content or verb.output(name).required else None
    return Task(name, tables(path, content, "parameters", "reading") | run, files, output, overwrite=overwrite)


def checked(path: Path, options: dict[str, Any], *models: Any) -> dict[str, Any]:
    """Return the options of a run file; raise if one is wrong."""
    try:
        for model in models:
            model.checked(values_of(options, model))
    except ParameterError as error:
        raise ParameterError(path, f"{error}") from None
    return options
