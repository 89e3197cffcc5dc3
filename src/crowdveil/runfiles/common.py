"""Files of names and values, TOML or JSON: read them, and check what all kinds of them have in common."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError


def load(path: Path) -> dict[str, Any]:
    """Return the content of a TOML or JSON file."""
    if not path.is_file():
        raise ParameterError(path, "there is no such run file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, OSError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise ParameterError(path, f"the run file is not valid {kind}{where}. Fix it.") from None
    if not isinstance(content, dict):
        raise ParameterError(path, "Expected a run file with names and values, but it holds something else.")
    return content


def tables(path: Path, content: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return the names and values of all tables under some keys."""
    found: dict[str, Any] = {}
    for key in keys:
        inner = content.get(key) or {}
        if not isinstance(inner, dict):
            raise ParameterError(path, f"{key} must be a table of names and values.")
        found |= inner
    return found


def known_only(path: Path, content: dict[str, Any], known: tuple[str, ...]) -> None:
    """Raise on unknown keys, so that a misspelled one is not ignored."""
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
