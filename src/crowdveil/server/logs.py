"""What the service says to its operator, on standard error: plain lines, or one JSON object a line.

No line holds a token, a name of a file, a parameter, or anything of the data. Of an unexpected error it gives the type and the
place in the code, and never the message.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_LOGGER = logging.getLogger("crowdveil.server")
_OTHERS = ("uvicorn", "uvicorn.error", "asyncio")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return the fields of a record, with the place of its error."""
    error = record.exc_info[1] if record.exc_info else None
    return getattr(record, "fields", {}) | ({} if error is None else located(error))


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, event, message, and fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
            **_fields(record),
        }
        return json.dumps(line, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """Sentences."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        more = ", ".join(f"{name} {value}" for name, value in _fields(record).items())
        return f"crowdveil: {record.getMessage()}{f' ({more})' if more else ''}"


class StandardErrorHandler(logging.Handler):
    """Lines on standard error as it is when they are written: it may be another one, or closed, since the start."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line of a record."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()


def configure(form: str) -> None:
    """Write lines of this form from now on; requests are logged in JSON alone."""
    handler = StandardErrorHandler()
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    for name in (_LOGGER.name, *_OTHERS):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if form == "json" and logger is _LOGGER else logging.WARNING)
    logging.getLogger("uvicorn.error").handlers = []
    logging.getLogger("uvicorn.error").propagate = True


def say(event: str, message: str, level: int = logging.INFO, **fields: Any) -> None:
    """Write a line."""
    if _LOGGER.isEnabledFor(level):
        _LOGGER.log(level, message, extra={"event": event, "fields": fields})


def say_fault(error: BaseException, **fields: Any) -> None:
    """Write where an unexpected error came from; its message may hold data, so it is left out."""
    say("fault", "internal error", logging.ERROR, **located(error), **fields)


def located(error: BaseException) -> dict[str, str]:
    """Return the type of an error, and the place in the code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f"{os.sep}crowdveil{os.sep}" in f.filename][-1:]
    places = dict.fromkeys(f"{Path(f.filename).name}:{f.lineno}" for f in [*ours, *frames[-1:]])
    return {"error": type(error).__name__, "place": " > ".join(places)}
