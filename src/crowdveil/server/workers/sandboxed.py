"""The sandboxed process itself: `python -m crowdveil.server.workers.sandboxed`, started by `sandbox`.

It reads a request from standard input, limits and confines itself before it opens a file, calls `work` of the module that
the request names, and writes {"result": …} or {"error": {"code": …, "parts": …}} to a file in its folder.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from crowdveil.errors import NO_MEMORY, TOO_DEEP, CrowdveilError, Text, internal_error, parts_of
from crowdveil.server.workers import landlock
from crowdveil.server.workers.sandbox import ANSWER

NO_SANDBOX = "the server could not confine the job, so it did not run it. Ask the operator of the server."
_TASKS_MOST = 4096


def main() -> None:
    """Answer one request."""
    request = json.load(sys.stdin)
    try:
        _limit(**request["bounds"])
        if request["landlock"] is not None:
            landlock.die_with(request["parent"])
            landlock.restrict(*([Path(path) for path in paths] for paths in request["landlock"]))
    except OSError:
        answer = _error("no_sandbox", NO_SANDBOX)
    else:
        answer = _answer(request["module"], request["request"])
    write_object(Path(request["folder"]) / ANSWER, answer)


def write_object(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object atomically."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(content), encoding="utf-8")
    part.replace(path)


def _answer(module: str, request: dict[str, Any]) -> dict[str, Any]:
    try:
        # Imported after confining, so that threads of libraries are confined, too.
        return {"result": import_module(module).work(request)}
    except CrowdveilError as error:
        return _error(error.code, error.text)
    except RecursionError:
        return _error("bad_input", TOO_DEEP)
    except MemoryError:
        return _error("no_memory", NO_MEMORY)
    except Exception as error:
        return _error("fault", internal_error(error))


def _error(code: str, message: str | Text) -> dict[str, Any]:
    return {"error": {"code": code, "parts": parts_of(message)}}


def _limit(memory: int | None, file_bytes: int | None) -> None:
    """Set resource limits, and be the first process to end when the machine runs out of memory."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing raises an error
    limits = {"CORE": 0, "NPROC": _TASKS_MOST, "FSIZE": file_bytes, "DATA": memory}
    for name, most in limits.items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        if most is not None and (hard == resource.RLIM_INFINITY or most < hard):
            resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    main()
