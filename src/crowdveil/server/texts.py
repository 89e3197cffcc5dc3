"""Text that neither a database nor an answer can hold: NUL, and half of a surrogate pair."""

from __future__ import annotations

import re
from typing import Any

_BAD = re.compile(r"[\x00\ud800-\udfff]")


def is_plain(text: str) -> bool:
    """Whether a text can be stored and sent."""
    return _BAD.search(text) is None


def plain(value: Any) -> Any:
    """A value with a replacement character for whatever cannot be stored or sent: for texts that are here already."""
    if isinstance(value, str):
        return _BAD.sub("\ufffd", value)
    if isinstance(value, dict):
        return {plain(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value
