"""Text that can be stored and sent, and sentences for users with nothing of the server's own in them."""

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


_WORD = r"[^\s/:;,'\"()\ue000-\ue002]"
"""A character of a name; the last three delimit references (`errors`), which stay whole."""
_PATH = re.compile(rf"(?<![\w./])(?:/{_WORD}+)*/(?P<last>{_WORD}+)")
"""A path from the root: the user's own files have no folder, so it is the server's."""
_WRITER = re.compile(rf"\.?(?P<name>{_WORD}*?)\.crowdveil-partial-{_WORD}+")
"""A temporary name, which holds the host and the process."""
_RUN = re.compile(r"run-[0-9a-f]{32}")


def without_paths(sentence: str) -> str:
    """Return a sentence without paths, leases, hosts and processes of the server: of a path its last part stays."""
    sentence = _PATH.sub(lambda found: found["last"], sentence)
    sentence = _WRITER.sub(lambda found: found["name"], sentence)
    return _RUN.sub("run", sentence)
