"""The audit log: who did what to which job, in a chain of hashes, so that a line that is changed or removed is seen.

Each line holds the hash of the line before it. Old lines are removed after the retention time; the line that records this names
the hash of the last that was removed. Who can write to the database can forge the whole chain: export it regularly to another
machine, and verify it against the exports.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from crowdveil.errors import InputError

START = "0" * 64
"""Stands for the line before the first."""
REMOVED = "removed lines of the audit log whose time was over, up to "
NAMES = ("time", "who", "what", "job", "previous", "hash")
"""What an exported line holds."""
_TOGETHER_S = 60.0


def hash_of(previous: str, at: str, who: str, what: str, job: str | None) -> str:
    """Return the hash of a line; `at` is its time as text."""
    content = json.dumps([previous, at, who, what, job], ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def time_text(seconds: float) -> str:
    """Return a time as it stands in exported lines, and in hashes."""
    return datetime.fromtimestamp(round(seconds, 3), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def exported(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the log as an exported line."""
    return {"time": time_text(row["at"]), **{name: row.get(name) for name in NAMES[1:]}}


def verified(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what is wrong with a chain of exported lines, oldest first; None where nothing is.

    Lines of versions without hashes may stand at the beginning.
    """
    chained = list(lines)
    while chained and chained[0]["hash"] is None:
        chained.pop(0)
    cut = _cut(chained)
    before = None
    for number, line in enumerate(chained, len(lines) - len(chained) + 1):
        if line["hash"] is None or line["hash"] != hash_of(
            *(line[n] for n in ("previous", "time", "who", "what", "job"))
        ):
            return f"line {number} was changed"
        if before is None and line["previous"] not in (START, cut):
            return f"lines before line {number} were removed"
        if before is not None and line["previous"] != before:
            return f"lines between line {number - 1} and line {number} were removed or put in another order"
        before = line["hash"]
    return None


def _cut(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the hash of the last line that the retention removed."""
    cuts = [line["what"].removeprefix(REMOVED) for line in lines if line["what"].startswith(REMOVED)]
    return cuts[-1] if cuts else None


def missing_from(lines: Sequence[Mapping[str, Any]], earlier: Sequence[Mapping[str, Any]]) -> str | None:
    """Return what an earlier export holds that the log does not, unless its retention time is over."""
    held = {line["hash"] for line in lines}
    first = next((line["time"] for line in lines if line["hash"] is not None), None)
    for number, line in enumerate(earlier, 1):
        if line["hash"] is not None and line["hash"] not in held and (first is None or line["time"] >= first):
            return f"line {number} of the export is not in the log any more"
    return None


def parsed(texts: Iterable[str], name: str) -> list[dict[str, Any]]:
    """Read exported lines."""
    lines = []
    for number, text in enumerate(texts, 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict) or set(line) != set(NAMES):
            raise InputError(name, f"line {number} is no line of an audit log; give a file of crowdveil audit export.")
        lines.append(line)
    return lines


class Refusals:
    """Refused requests, recorded once a minute for each reason: strangers can make any number of them."""

    def __init__(self, say: Callable[[str, str], None]) -> None:
        self._say, self._lock = say, threading.Lock()
        self._more = Counter[str]()
        self._since: dict[str, float] = {}

    def add(self, reason: str) -> None:
        """Record a refused request, or count it."""
        with self._lock:
            now = time.monotonic()
            if now - self._since.get(reason, -_TOGETHER_S) < _TOGETHER_S:
                self._more[reason] += 1
                return
            self._since[reason] = now
        self._say("stranger", reason)

    def flush(self, *, all_of_them: bool = False) -> None:
        """Record what was counted."""
        with self._lock:
            now = time.monotonic()
            due = [r for r in self._more if all_of_them or now - self._since[r] >= _TOGETHER_S]
            counted = {reason: self._more.pop(reason) for reason in due}
        for reason, times in counted.items():
            self._say("stranger", f"{reason}, {times:,} more times")
