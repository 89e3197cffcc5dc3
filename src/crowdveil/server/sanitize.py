"""Remove from texts what no answer may hold: paths of the server, and characters that cannot be stored or sent."""

from __future__ import annotations

import re
from typing import Any

_WORD = r"[^\s/:;,'\"()\ue000-\ue002]"
"""A character of a name; the last three delimit references (`errors`), which stay whole."""
_PATH = re.compile(rf"(?<![\w./])(?:/{_WORD}+)*/(?P<last>{_WORD}+)")
"""A path from the root: the user's own files have no folder, so it is the server's."""
_WRITER = re.compile(rf"\.?(?P<name>{_WORD}*?)\.crowdveil-partial-{_WORD}+")
"""A temporary name, which holds the host and the process."""
_UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""
_RUN = re.compile(r"run-[0-9a-f]{32}")


def without_paths(sentence: str) -> str:
    """Return a sentence without paths, leases, hosts and processes of the server; the last part of a path stays."""
    sentence = _PATH.sub(lambda found: found["last"], sentence)
    sentence = _WRITER.sub(lambda found: found["name"], sentence)
    return _RUN.sub("run", sentence)


def sendable(value: Any) -> Any:
    """Return a JSON value with a replacement character for each one that PostgreSQL or JSON cannot hold."""
    if isinstance(value, str):
        return _UNSENDABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sendable(name): sendable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [sendable(inner) for inner in value]
    return value
