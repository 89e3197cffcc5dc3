"""Replace characters that cannot be stored or sent."""

from __future__ import annotations

import re
from typing import Any

_UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""


def sendable(value: Any) -> Any:
    """Return a JSON value with a replacement character for each one that PostgreSQL or JSON cannot hold."""
    if isinstance(value, str):
        return _UNSENDABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sendable(name): sendable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [sendable(inner) for inner in value]
    return value
