"""Work on files of others in a process of its own, for requests that wait for the answer: what goes wrong there ends there."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool

from crowdveil.errors import NO_MEMORY
from crowdveil.server.answers import ApiError
from crowdveil.server.quotas import turn
from crowdveil.server.sentences import without_paths
from crowdveil.server.workers.process import PREVIEW_MEMORY_MOST, memory_of
from crowdveil.server.workers.sandbox.confine import clean_environment

AT_ONCE = 32
"""Processes at a time, whatever the settings say; the places for previews are in `quotas`."""
LOOK_EVERY_S = 0.2
_TEMPORARY = ".tmp"
"""The temporary folder of such a process, in the folder that it works in; no upload has a name that begins so."""
# As in commands: what is not used, or not yet, takes half of the time of a look.
_CODE = (
    "from crowdveil.startup import start_quickly; start_quickly(); from crowdveil.server.{module} import main; main()"
)
NO_THREADS = {
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
    # The allocator in pyarrow has a thread of its own.
    **dict.fromkeys(("JE_ARROW_MALLOC_CONF", "MALLOC_CONF"), "background_thread:false"),
}
_places = asyncio.Semaphore(AT_ONCE)


async def apart(
    module: str, request: dict[str, Any], folder: Path, seconds: float, memory: int | None
) -> dict[str, Any]:
    """As `run_apart`, a few at a time; those that wait hold no thread, which other requests need."""
    async with turn(_places):
        return await run_in_threadpool(run_apart, module, request, folder, seconds, memory)


def run_apart(module: str, request: dict[str, Any], folder: Path, seconds: float, memory: int | None) -> dict[str, Any]:
    """Run the `main` of a module of the service in a folder: a request of JSON goes in, an answer of JSON comes out.

    An answer {"refused": text} is an error that the user can fix.
    """
    temporary = folder / _TEMPORARY
    temporary.mkdir(mode=0o700)
    # A library that starts threads as it is imported would start them outside the sandbox.
    environment = clean_environment(os.environ, temporary) | NO_THREADS
    memory = min(memory or PREVIEW_MEMORY_MOST, PREVIEW_MEMORY_MOST)
    # What libraries print may hold data, so it goes nowhere.
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE.format(module=module)], cwd=folder, env=environment, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            about = {"parent": os.getpid(), "temporary": _TEMPORARY, "memory": memory}
            answer = _answer(process, json.dumps(request | about).encode(), time.monotonic() + seconds, memory)
        finally:
            process.kill()
            shutil.rmtree(temporary, ignore_errors=True)
    if "refused" in answer:
        raise ApiError(422, "bad_input", without_paths(answer["refused"]))
    return answer


def _answer(process: subprocess.Popen[bytes], request: bytes, until: float, memory: int) -> dict[str, Any]:
    given: bytes | None = request
    said: bytes | None = None
    while said is None:
        try:
            said = process.communicate(given, timeout=LOOK_EVERY_S)[0]
        except subprocess.TimeoutExpired:
            given = None  # it is sent once
            if time.monotonic() > until:
                raise ApiError(
                    422, "too_long", "looking at the file takes too long; run it without, or give less data."
                ) from None
            if memory_of(process.pid) > memory:
                raise ApiError(422, "no_memory", NO_MEMORY) from None
    if process.returncode < 0:
        raise ApiError(422, "no_memory", NO_MEMORY)
    try:
        answer: dict[str, Any] = json.loads(said)
    except ValueError:
        raise ApiError(
            500, "fault", "internal error (the file); please report it to the operator of the server."
        ) from None
    return answer
