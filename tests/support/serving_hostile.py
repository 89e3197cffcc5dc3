"""Hostile files sent to a service that is watched: what its confined processes opened, and whom they asked."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from hostile import SECRET, Hostile, Listener, make_secret
from serving import BARE, Running, ended, until
from serving_fuzz import mutated

_ZONED = (".json", ".geojson", ".gpkg", ".geoparquet")
_TRIPS = b"origin,destination\na,a\n"
_JOINT = "/methods/joint/jobs"
_CALL = re.compile(r"^(\d+) +(\w+)\((.*?)(?:\) += (-?\w+)(?:<(.*)>)?.*| <unfinished \.\.\.>)$")
_ENDED = re.compile(r"^(\d+) +\+\+\+ ")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\w+)(?:<(.*)>)?")


def hostile(service: Running, count: int, seed: int) -> dict[str, int]:
    """Send so many hostile files as jobs and to be looked at, to a service that is not started yet; how often each answer came.

    Raises if any answer is a 5xx, a job ends in a fault of ours, anything stays on the disk, the listener is asked, or
    `watched` finds something.
    """
    chance, answers = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as made, Listener() as listener:
        secret = make_secret(Path(made))
        with watched(service, secret) as seen, service.client() as client:
            for name, content in _files(Hostile(secret, listener.url), count, chance):
                _sent(client, name, content, chance, answers)
            until(lambda: not [*(service.folder / "incoming").iterdir(), *(service.folder / "jobs").iterdir()])
        assert listener.asked == 0, f"{listener.asked} requests"
    return dict(answers | seen)


@contextmanager
def watched(service: Running, secret: Path | None = None) -> Iterator[Counter[str]]:
    """Run a service under strace, where it is installed, and count what its confined processes opened.

    Raises at the end if a confined process opened anything but its own folder and the installation, or made a socket; if any
    process asked another machine; if any process opened the secret.
    """
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as made:
        seen = Path(made, "seen")
        if shutil.which("strace"):
            service.prefix = ["strace", "-D", "-f", "-y", "--seccomp-bpf", "-q", "-o", str(seen), "-e",
                              "trace=open,openat,socket,connect,clone,clone3,landlock_restrict_self"]  # fmt: skip
        try:
            service.start()
            yield counts
        finally:
            service.stop()
        if seen.exists():
            counts.update(_held(seen, service.folder.resolve(), secret))


def _files(made: Hostile, count: int, chance: random.Random) -> Iterator[tuple[str, bytes]]:
    """Each file as it is, then with faults."""
    every = {n: c for n, c in made.zones().items() if n.endswith(_ZONED)} | made.matrices() | made.tables()
    names = list(every)
    for i in range(count):
        name = names[i % len(names)]
        yield name, every[name] if i < len(names) else mutated(every[name], chance)


def _sent(client: httpx.Client, name: str, content: bytes, chance: random.Random, answers: Counter[str]) -> None:
    data = ("a.csv", _TRIPS) if name.endswith(_ZONED) else (name, content)
    files = {"data": data} | ({"zones": (name, content)} if name.endswith(_ZONED) else {})
    path = "/preview" if chance.random() < 0.2 else _JOINT
    answer = client.post(
        path, files=files, data={} if path == "/preview" else {"parameters": json.dumps({"k": 2, **BARE})}
    )
    assert answer.status_code < 500, (name, answer.status_code, answer.text)
    assert SECRET not in answer.text
    answers[str(answer.status_code)] += 1
    if answer.status_code != 202:
        return
    job = answer.json()["id"]
    found = ended(client, job, 600)
    assert found["error"] is None or found["error"]["code"] not in ("fault", "crashed", "no_sandbox"), (name, found)
    answers[found["state"] if found["error"] is None else found["error"]["code"]] += 1
    result = client.get(f"/jobs/{job}/result")
    assert result.status_code in (200, 422) and SECRET.encode() not in result.content
    assert client.delete(f"/jobs/{job}").status_code == 200


def _held(seen: Path, data: Path, secret: Path | None) -> Counter[str]:
    """Check what was done, from strace: a path that was opened is that of the file itself, behind all links."""
    from crowdveil.server.workers.sandbox.confine import installed

    allowed = [*installed(), Path("/dev/null"), Path(__file__).parent]
    confined: dict[int, set[str]] = {}
    group: dict[int, Path] = {}  # /proc/self/cgroup of a process, which its threads may read too
    counts = Counter[str]({"connections": 0, "opened outside the run folder": 0})
    for process, call, arguments, result, opened in _calls(seen):
        if call == "landlock_restrict_self" and result == "0":
            confined[process], group[process] = set(), Path(f"/proc/{process}/cgroup")
            counts["confined processes"] += 1
        elif call == "exited":  # its number may be given to another process
            confined.pop(process, None)
        elif process in confined and call.startswith("clone") and result.isdecimal():
            confined[int(result)], group[int(result)] = confined[process], group[process]  # a thread
        elif call in ("connect", "socket"):
            assert process not in confined or result == "-1", (call, arguments)
            assert call == "socket" or "AF_INET" not in arguments, arguments
        elif call in ("open", "openat") and result.isdecimal():
            path = Path(opened)
            assert path != secret, arguments
            if process in confined and path != group[process] and not any(path.is_relative_to(a) for a in allowed):
                assert path.is_relative_to(data), f"a confined process opened {path}"
                confined[process].add("/".join(path.relative_to(data).parts[:2]))
                assert len(confined[process]) == 1, confined[process]
                counts["opened in the run folder"] += 1
    assert counts["confined processes"] > 0 and counts["opened in the run folder"] > 0
    return counts


def _calls(seen: Path) -> Iterator[tuple[int, str, str, str, str]]:
    """Calls with their results, and the path of what was opened; one that another came between is put together again."""
    begun: dict[int, tuple[str, str]] = {}
    with seen.open(errors="replace") as lines:
        for line in lines:
            if ended := _ENDED.match(line):
                yield int(ended[1]), "exited", "", "", ""
            elif resumed := _RESUMED.match(line):
                call, arguments = begun.pop(int(resumed[1]), (resumed[2], '""'))
                yield int(resumed[1]), call, arguments, resumed[3], resumed[4] or ""
            elif found := _CALL.match(line.rstrip("\n")):
                if found[4] is None:
                    begun[int(found[1])] = found[2], found[3]
                else:
                    yield int(found[1]), found[2], found[3], found[4], found[5] or ""


def sandbox_overhead_ms(times: int) -> float:
    """Milliseconds that the sandbox adds to a job: the median of children that enter it, less that of those that do not."""
    from types import SimpleNamespace

    from crowdveil.kernels import cached
    from crowdveil.server.workers.child import Confinement, _enter
    from crowdveil.server.workers.sandbox.confine import installed, tasks_of_user
    from crowdveil.server.workers.starter import preload

    preload()
    installed()
    confinement = Confinement(4 << 30, tasks_of_user(), tuple(cached.folders()))
    limits = {"max_seconds": 3600, "upload_bytes": 1 << 31}

    def entered(given: Confinement | None) -> float:
        with tempfile.TemporaryDirectory() as made:
            inputs, run = Path(made, "inputs"), Path(made, "run")
            inputs.mkdir()
            run.mkdir()
            order: Any = SimpleNamespace(limits=limits, inputs=inputs, run=run, ledger=None)
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    begun = time.perf_counter()
                    _enter(order, write, given)
                    os.write(write, f"{time.perf_counter() - begun}".encode())
                finally:
                    os._exit(0)
            os.close(write)
            os.waitpid(child, 0)
            said = os.read(read, 100)
            os.close(read)
            return 1000 * float(said)

    confined, free = ([entered(given) for _ in range(times)] for given in (confinement, None))
    return statistics.median(confined) - statistics.median(free)
