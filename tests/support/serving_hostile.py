"""Hostile files sent to a service that is watched: what its confined processes opened, and whom they asked."""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from hostile import SECRET, Hostile, Listener, make_secret
from serving import BARE, Running, ended, until
from serving_fuzz import mutated

_ZONED = (".json", ".geojson", ".gpkg", ".geoparquet")
_TRIPS = b"origin,destination\na,a\n"
_JOINT = "/methods/joint/jobs"
_OPENED = re.compile(r"\) += \d+<(.*)>")


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
    """Run a service under strace, where it is installed, and count what it opened.

    Raises at the end if any process asked another machine, or opened the secret.
    """
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as made:
        seen = Path(made, "seen")
        if shutil.which("strace"):
            service.prefix = ["strace", "-D", "-f", "-y", "--seccomp-bpf", "-q", "-o", str(seen), "-e",
                              "trace=open,openat,connect"]  # fmt: skip
        try:
            service.start()
            yield counts
        finally:
            service.stop()
        if seen.exists():
            counts.update(_checked(seen, secret))


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


def _checked(seen: Path, secret: Path | None) -> Counter[str]:
    """Check what was done, from strace: a path that was opened is that of the file itself, behind all links."""
    counts = Counter[str]()
    with seen.open(errors="replace") as lines:
        for line in lines:
            assert "connect(" not in line or "AF_INET" not in line, line
            if opened := _OPENED.search(line):
                assert secret is None or Path(opened[1]).name != secret.name, line
                counts["opened"] += 1
    assert counts["opened"] > 0
    return counts
