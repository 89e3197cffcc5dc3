"""Sentences for users: nothing of the server's own in them."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w./])(?:/[^\s/:;,'\"()]+)*/(?P<last>[^\s/:;,'\"()]+)")
"""A path from the root: the user's own files have no folder, so it is the server's."""
_WRITER = re.compile(r"\.?(?P<name>[^\s/:;,'\"()]*?)\.crowdveil-partial-[^\s/:;,'\"()]+")
"""A temporary name, which holds the host and the process."""
_RUN = re.compile(r"run-[0-9a-f]{32}")


def without_paths(sentence: str) -> str:
    """Return a sentence without paths, leases, hosts and processes of the server: of a path its last part stays."""
    sentence = _PATH.sub(lambda found: found["last"], sentence)
    sentence = _WRITER.sub(lambda found: found["name"], sentence)
    return _RUN.sub("run", sentence)
