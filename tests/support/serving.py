"""A service that is started as users start it, for tests and benchmarks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from crowdveil.server.service import Service

if find_spec("sniffio") is None:
    # httpx would look for it at each request within a process, which takes as long as half of the answer.
    sys.modules["sniffio"] = None  # type: ignore[assignment]

_CODE = "from crowdveil.cli.main import main; main()"
WARM = ("joint", "suppression", "simple-generalization", "microaggregation")
"""Methods that most tests of the service run."""
_FIRST = "lat,lon,timestamp,trajectory_id,user_id\n"


BARE = {"attack": False, "report": False}
"""Parameters of a job whose release is all that matters."""

ERROR_KEYS = {"code", "subject", "message", "parts"}
"""What every error has: its kind, what is wrong, the sentence, and the sentence with its references apart."""


def cabs(people: int = 12, points: int = 5, shift: int = 0) -> str:
    """A small CSV of trajectories."""
    return _FIRST + "".join(
        f"{37.7 + i * 0.0005 + j * 0.0001:.5f},{-122.4 + j * 0.001:.5f},{1_212_900_000 + shift + 60 * j},{i},{i}\n"
        for i in range(people)
        for j in range(points)
    )


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@cache
def warm_up() -> None:
    """Compile kernels, as operators do: a job keeps none that it compiles."""
    subprocess.run([sys.executable, "-c", _CODE, "server", "warmup", *WARM], check=True, stdout=subprocess.DEVNULL)


def opened(folder: Path, database_url: str | None = None, **settings: Any) -> Service:
    """An open service; requests without a token are those of this machine, unless four eyes are needed."""
    from crowdveil.server.service import open_service
    from crowdveil.server.settings import Settings

    how = {"no_auth": not settings.get("four_eyes", False), **settings}
    return open_service(Settings(data_dir=str(folder), database_url=database_url, **how))


def asking(service: Service, name: str, **how: Any) -> Within:
    """A client with a new token, of an app with all routes."""
    from crowdveil.compat.mobidatalab.routes import add_routes
    from crowdveil.server.app import make_app

    token = service.tokens.create(name, **how)
    return Within(make_app(service, [add_routes]), Authorization=f"Bearer {token}")


def token_id(service: Service, name: str) -> str:
    """The id of a token."""
    return next(str(row["id"]) for row in service.tokens.all() if row["name"] == name)


def job_in(service: Service, owner: str, state: str = "done", table: str = "lat,lon\n1,2\n", **more: Any) -> str:
    """A job that was put into a state without running; its input and the data of its result are a table."""
    from crowdveil.server.queue.store import NewJob, new_id

    store, files, job, name = service.store, service.files, new_id(), more.pop("name", "a.csv")
    (files.receive(job) / "inputs" / name).write_text(table)
    files.accept(job)
    new = NewJob(job, owner, "anonymize", "swapmob", {"seed": 77}, {"data": name}, {}, 1000, **more)
    assert store.add(new, 1000)
    if state == "queued":
        return job
    held = store.claim("w", 600)
    assert held is not None and held.id == job and held.lease is not None
    if state == "failed":
        assert store.fail(held, "bad_input", f"{name}: there is nothing in it.")
    elif state == "done":
        run = files.run(job, held.lease)
        run.mkdir()
        with zipfile.ZipFile(run / "release.zip", "w") as archive:
            archive.writestr("manifest.json", json.dumps({"files": {"data": {"name": "t.csv"}}}))
            archive.writestr("t.csv", table)
        size = (run / "release.zip").stat().st_size
        about = {"name": "release.zip", "bytes": size, "sha256": "00", "media_type": "application/zip"}
        assert store.finish(held, about | {"lease": held.lease})
    return job


class Running:
    """`crowdveil server start` as a process."""

    def __init__(self, folder: Path, *arguments: str, workers: int = 2, database_url: str | None = None) -> None:
        self.folder, self.port, self.workers, self.database_url = folder, free_port(), workers, database_url
        self.arguments = [
            "--data-dir",
            str(folder),
            *([] if database_url is None else ["--database-url", database_url]),
        ]
        self.more, self.tokens, self.process = list(arguments), dict[str, str](), None
        self.prefix: list[str] = []  # a command that it is started by, such as strace

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def make_token(self, name: str, **how: Any) -> str:
        """A token of this service."""
        with opened(self.folder, self.database_url) as service:
            self.tokens[name] = service.tokens.create(name, **how)
        return self.tokens[name]

    def start(self, *, waits: bool = True) -> None:
        """Start it, and wait until it answers at its port."""
        warm_up()
        command = [
            sys.executable,
            "-c",
            _CODE,
            "server",
            "start",
            "--port",
            str(self.port),
            "--workers",
            str(self.workers),
        ]
        env = {n: v for n, v in os.environ.items() if not n.startswith("CROWDVEIL_")}
        self.process = subprocess.Popen(
            [*self.prefix, *command, *self.arguments, *self.more], stdout=subprocess.DEVNULL, env=env
        )
        until = time.monotonic() + 300  # a busy machine, under strace
        while waits and time.monotonic() < until:
            try:
                httpx.get(f"{self.url}/health", timeout=30, verify=False)
                return
            except httpx.TransportError:
                time.sleep(0.05)
        if waits:
            raise AssertionError("the service does not answer")

    def stop(self) -> None:
        """Ask it to stop."""
        if self.process is not None:
            self.process.terminate()
            assert self.process.wait(60) == 0
            self.process = None

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def job_processes(self) -> list[int]:
        """Processes of its jobs."""
        assert self.process is not None
        return descendants(self.process.pid)

    def client(self, token: str | None = "anna") -> httpx.Client:
        """Return a client with a token."""
        headers = {"Authorization": f"Bearer {self.tokens[token]}"} if token in self.tokens else {}
        # Certificates of authorities take long to read, and nothing here has one.
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, verify=False)


def descendants(pid: int) -> list[int]:
    """Processes that a process started, and those that they started."""
    return [one for child in children(pid) for one in (child, *descendants(child))]


class Within:
    """An app that is asked in this process, by the same calls as a client."""

    def __init__(self, app: Any, **headers: str) -> None:
        self.app, self.headers = app, headers

    def request(self, method: str, path: str, **how: Any) -> httpx.Response:
        """Ask, and wait for the answer."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://127.0.0.1", headers=self.headers
            ) as client:
                return await client.request(method, path, **how)

        return asyncio.run(ask())

    def get(self, path: str, **how: Any) -> httpx.Response:
        """Ask for something."""
        return self.request("GET", path, **how)

    def post(self, path: str, **how: Any) -> httpx.Response:
        """Send something."""
        return self.request("POST", path, **how)


def kill(pid: int) -> None:
    """Kill a process that may be gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += [int(child) for child in (task / "children").read_text().split()]
    except OSError:  # it, or a part of it, is gone
        return found
    return found


def post(client: Any, path: str, files: dict[str, Any], parameters: dict[str, Any] | None = None) -> Any:
    """Put a job into the queue."""
    return client.post(path, files=files, data={"parameters": json.dumps(parameters or {})})


def put(client: Any, path: str, files: dict[str, Any], parameters: dict[str, Any] | None = None) -> str:
    """Put a job into the queue, and take its id."""
    answer = post(client, path, files, parameters)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def ended(client: httpx.Client, job: str, within_s: float = 120.0) -> dict[str, Any]:
    """A job once it ended."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            seen = client.get(f"/jobs/{job}")
        except httpx.TransportError:  # it is being started again
            time.sleep(0.1)
            continue
        assert seen.status_code == 200, seen.text
        if seen.json()["state"] not in ("queued", "running"):
            found: dict[str, Any] = seen.json()
            return found
        time.sleep(0.1)  # to ask and to answer takes 6 ms of a processor
    raise AssertionError(f"the job did not end: {seen.text}")


def until(condition: Callable[[], Any], within_s: float = 300.0) -> Any:
    """What a condition comes to, once it comes to something."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen in time")
