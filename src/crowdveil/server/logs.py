"""Log to standard error, as text or JSON, and keep the audit log.

No line holds a token, a name of a file, a parameter, or anything of the data. An unexpected error is logged with its type and the
place in the code, without its message.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_LOGGER = logging.getLogger("crowdveil.server")
_OTHERS = ("uvicorn", "asyncio")


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record, with the place of its error."""
    error = record.exc_info[1] if record.exc_info else None
    return getattr(record, "fields", {}) | ({} if error is None else located(error))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, message, and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            **_fields(record),
        }
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One sentence per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        more = ", ".join(f"{name} {value}" for name, value in _fields(record).items())
        return f"crowdveil: {record.getMessage()}{f' ({more})' if more else ''}"


class StandardErrorHandler(logging.Handler):
    """Write to the current standard error, which may have been replaced or closed since the start."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()


def configure(form: str) -> None:
    """Set the log format. Requests are logged in JSON only."""
    handler = StandardErrorHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    for name in (_LOGGER.name, *_OTHERS):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if form == "json" and logger is _LOGGER else logging.WARNING)


def say(event: str, message: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log an event."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, message, extra={"event": event, "fields": fields})


def say_fault(error: BaseException, **fields: Any) -> None:
    """Log the type and place of an unexpected error, but not its message, which may hold data."""
    say("fault", "internal error", logging.ERROR, **located(error), **fields)


def located(error: BaseException) -> dict[str, str]:
    """Return the type of an error, and the place in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}crowdveil{os.sep}" in f.filename][-1:]
    places = dict.fromkeys(f"{Path(f.filename).name}:{f.lineno}" for f in [*own, *frames[-1:]])
    return {"error": type(error).__name__, "place": " > ".join(places)}


def exported(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of the log as an exported line; `names` are those of tokens."""
    who = row["who"]
    return {
        "time": _utc(round(row["at"], 3)),
        "who": who,
        "name": names.get(who, who),
        "what": row["what"],
        "job": row["job"],
    }
