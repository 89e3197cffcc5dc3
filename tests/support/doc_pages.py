"""Pages of the docs, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```(sh|console|python)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return kind and content of each block of commands or Python."""
    return _BLOCK.findall(page.read_text())


def commands(page: Path) -> Iterator[list[str]]:
    """The commands of a page as lists of arguments, without what a shell does around them."""
    for kind, body in blocks(page):
        for line in body.replace("\\\n", " ").splitlines() if kind != "python" else ():
            words = shlex.split(line, comments=True) if "crowdveil" in line else []
            for command in _split(words):
                if command[0] == "crowdveil" and not any(re.search(r"^\[|\.\.\.$|^[A-Z]+$|…", w) for w in command[1:]):
                    yield command[1:]


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", "|", ">", ";"):
            if command:
                yield command
            command = []
        else:
            command.append(word)
