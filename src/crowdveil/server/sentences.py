"""Sentences for users: nothing of the server's own in them."""

from __future__ import annotations

import re

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
