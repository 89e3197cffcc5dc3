"""What a process that opens uploads holds of the service's secrets: nothing, in all of its memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from serving import BARE, Running, cabs, children, ended, kill, put, until

pytestmark = pytest.mark.slow
MARK = "pq7zk2v9"
SLOW_S = 300.0
"""A busy machine may take long; what is tested is what happens, not when."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """One with a word in the address of its database that nothing else has."""
    (tmp_path / MARK).mkdir()
    made = Running(tmp_path / "data", workers=1, database_url=f"sqlite:///{tmp_path / MARK / 'jobs.sqlite'}")
    made.make_token("anna")
    made.start()
    yield made
    made.stop()


def starters(service: Running) -> tuple[int, int, list[int]]:
    """The crew, its launcher, and the starters that it forked."""
    assert service.process is not None

    def starts(process: int) -> bool:
        try:
            return b"workers.starter" in Path(f"/proc/{process}/cmdline").read_bytes()
        except OSError:  # it ended
            return False

    def found() -> tuple[int, int, list[int]] | None:
        assert service.process is not None
        for crew in children(service.process.pid):
            for one in filter(starts, children(crew)):
                if forked := [process for process in children(one) if starts(process)]:
                    return crew, one, forked
        return None

    seen: tuple[int, int, list[int]] = until(found, SLOW_S)
    return seen


def held(process: int, *words: bytes) -> list[bool]:
    """Which of some words a process has anywhere in memory that is its own: all but what libraries map read-only."""
    found = [False] * len(words)
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            span, mode, *_ = line.split()
            if mode[:2] != "rw" and not line.endswith("[stack]"):
                continue
            begin, end = (int(address, 16) for address in span.split("-"))
            with suppress(OSError):  # a page that cannot be read
                for at in range(begin, end, 1 << 24):
                    memory.seek(at)
                    piece = memory.read(min(end - at, 1 << 24))
                    found = [f or w in piece for f, w in zip(found, words, strict=True)]
    return found


@contextmanager
def stopped_job(client: httpx.Client, starter: int) -> Iterator[tuple[str, int]]:
    """A job, and the child that runs it, which is stopped as soon as it is there."""

    def stopped() -> int:
        (child,) = until(lambda: children(starter), SLOW_S)
        os.kill(child, signal.SIGSTOP)
        return int(child)

    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(stopped)
        job = put(client, "/methods/microaggregation/jobs", {"data": ("a.csv", cabs(1500, 60))}, BARE)
        child = found.result()
    yield job, child
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGCONT)
    assert ended(client, job, SLOW_S)["state"] == "done"


def test_a_child_has_no_secret_in_its_memory(service: Running) -> None:
    crew, launcher, found = starters(service)
    (starter,) = found
    token = service.tokens["anna"].encode()
    with service.client() as client, stopped_job(client, starter) as (job, child):
        seen = {p: held(p, MARK.encode(), token, job.encode()) for p in (launcher, starter, child)}
    # A child knows its own job, so the search finds what is there.
    assert seen == {launcher: [False] * 3, starter: [False, False, True], child: [False, False, True]}
    assert held(crew, MARK.encode()) == [True]


@pytest.mark.parametrize("which", ["launcher", "starter"])
def test_a_job_outlives_the_process_that_started_its_child(service: Running, which: str) -> None:
    _, launcher, (starter,) = starters(service)
    with service.client() as client, stopped_job(client, starter):
        kill({"launcher": launcher, "starter": starter}[which])
    assert starters(service)[1:] != (launcher, [starter])
