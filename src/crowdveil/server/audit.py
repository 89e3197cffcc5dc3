"""The audit log: who did what to which job. Lines are only appended, and removed after the retention time."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

_TOGETHER_S = 60.0


def exported(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of the log as an exported line; `names` are those of tokens."""
    moment = datetime.fromtimestamp(round(row["at"], 3), UTC).isoformat(timespec="milliseconds")
    who = row["who"]
    return {
        "time": moment.replace("+00:00", "Z"),
        "who": who,
        "name": names.get(who, who),
        "what": row["what"],
        "job": row["job"],
    }


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
