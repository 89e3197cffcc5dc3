"""Files of names and values, TOML or JSON: reading them, and the checks that all kinds of them share."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.errors import ParameterError


@dataclass(frozen=True)
class AnalysisRequest:
    """One analysis: of what, with which options, to where. Checked when it runs."""

    analysis: str
    data: str
    output: str | None
    options: dict[str, Any]
    overwrite: bool = False


def load(path: Path) -> dict[str, Any]:
    """The content of a TOML or JSON file."""
    if not path.is_file():
        raise ParameterError(path, "there is no such run file.")
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, OSError) as error:
        where = f" in line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        kind = "TOML" if path.suffix.lower() == ".toml" else "JSON"
        raise ParameterError(path, f"the run file is not valid {kind}{where}; mend it.") from None
    if not isinstance(content, dict):
        raise ParameterError(path, "wanted a run file with names and values, but it holds something else.")
    return content


def tables(path: Path, content: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Names and values under some keys, together."""
    found: dict[str, Any] = {}
    for key in keys:
        inner = content.get(key) or {}
        if not isinstance(inner, dict):
            raise ParameterError(path, f"{key} must be a table of names and values.")
        found |= inner
    return found


def yes_or_no(path: Path, content: dict[str, Any], key: str, *, default: bool = False) -> bool:
    """A value that is true or false."""
    value = content.get(key, default)
    if not isinstance(value, bool):
        raise ParameterError(path, f"{key} must be true or false.")
    return value


def known_only(path: Path, content: dict[str, Any], known: tuple[str, ...]) -> None:
    """Refuse names that mean nothing, so that a slip of the pen is not passed over."""
    unknown = [key for key in content if key not in known]
    if unknown:
        raise ParameterError(path, f"{unknown[0]} means nothing here; known are {', '.join(known)}.")


def need(path: Path, content: dict[str, Any], key: str, kind: type = str) -> Any:
    """A value that must be there, of a type."""
    value = content.get(key)
    if not isinstance(value, kind) or not value:
        raise ParameterError(
            path, f"wanted {key} ({'text' if kind is str else kind.__name__}); add it to the run file."
        )
    return value


def check_seed(path: Path, seed: Any) -> None:
    """Raise unless a value can be a seed; None, where none was given, can."""
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or seed < 0):
        raise ParameterError(path, "seed must be a whole number from 0.")
