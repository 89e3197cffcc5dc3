"""Pages of the docs, and the commands in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_BLOCK = re.compile(r"^```([a-z]+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def parts(page: Path) -> list[tuple[str, str, str]]:
    """Return kind, file name (if any) and content of each block of code."""
    return _BLOCK.findall(page.read_text())


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return kind and content of each block of commands or Python."""
    return [(kind, body) for kind, _, body in parts(page) if kind in ("sh", "console", "python")]


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page as lists of arguments, without what a shell does around them."""
    for kind, body in blocks(page):
        if kind != "python":
            yield from commands_in(body)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the commands of a text as lists of arguments; those with placeholders are left out."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True) if "crowdveil" in line else []
        for command in _split(words):
            if command[0] == "crowdveil" and not any(re.search(r"^\[|\.\.\.$|^[A-Z]+$|…", w) for w in command[1:]):
                yield command[1:]


def _split(words: list[str]) -> Iterator[list[str]]:
    command: list[str] = []
    for word in [*words, "&&"]:
        if word in ("&&", "||", "|", "|&", ">", ";"):
            if command:
                yield command
            command = []
        else:
            command.append(word)
