"""The client of a server: send files, follow a job, fetch its result."""

from __future__ import annotations

import hashlib
import io
import ipaddress
import json
import os
import re
import ssl
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import CrowdveilError, InputError, Name, Option, ParameterError, from_json

if TYPE_CHECKING:
    import httpx  # takes 0.2 s to import, so it waits until a server is asked

LOCAL_SERVER = "http://127.0.0.1:8000"
CHUNK = 1 << 18
PATIENCE_S = 60.0
"""How long a server may be unreachable (it may be restarting) while a job is followed."""
TIMEOUT_S = 120.0
RETRIES = 2
AGAIN_S = 0.5
BAD_REQUEST = 400
_ID = re.compile(r"[0-9a-f]{32}")


class ServerError(CrowdveilError):
    """The server does not answer, or answers unexpectedly."""


@dataclass
class Remote:
    """A server.

    Attributes
    ----------
    url
        Its address.
    token
        The token of the caller; "" for none.
    """

    url: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            scheme, host, _ = parts.scheme, parts.hostname, parts.port
        except ValueError:  # an invalid port or IPv6 address
            scheme, host = "", None
        if scheme not in ("http", "https") or not host:
            raise ParameterError(
                Option("server"), "Expected an address such as https://crowdveil.example.org or http://127.0.0.1:8000."
            )
        if scheme == "http" and not is_here(host) and not os.environ.get("CROWDVEIL_INSECURE"):
            raise ParameterError(
                Option("server"),
                "data must not be sent over http:// to another machine. Use https://, or set CROWDVEIL_INSECURE=1 "
                "if the connection is protected by other means.",
            )

    def start(
        self,
        collection: str,
        name: str,
        parameters: dict[str, Any],
        files: Mapping[str, Path],
        progress: Progress = no_progress,
    ) -> dict[str, Any]:
        """Upload files, and put a job into the queue."""
        path = f"/{quote(collection)}/{quote(name, safe='')}/jobs"
        return self.send(path, {"parameters": json.dumps(parameters)}, files, progress)

    def send(
        self, path: str, texts: Mapping[str, str], files: Mapping[str, Path], progress: Progress = no_progress
    ) -> dict[str, Any]:
        """Send a form with its files, and return the answer. It is never sent again, since the server may have accepted it."""
        sent, total = 0, sum(_size(file) for file in files.values())

        def report(size: int) -> None:
            nonlocal sent
            sent += size
            progress(min(sent, total), total)

        with ExitStack() as stack:
            opened = {n: (_plain(f.name), stack.enter_context(_CountedFile(f, report))) for n, f in files.items()}
            # Texts come first, so that the server refuses a wrong one before the files are sent.
            return self._answer(
                "POST", path, files=[*((n, (None, text)) for n, text in texts.items()), *opened.items()]
            )

    def _answer(self, method: str, path: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return the answer as JSON."""
        with self._asked(method, path, **request) as answer:
            return _json(answer)

    def job(self, job: str) -> dict[str, Any]:
        """Return a job."""
        return self._answer("GET", f"/jobs/{checked_id(job)}")

    def jobs(self) -> list[dict[str, Any]]:
        """Return the newest jobs of the caller."""
        jobs: list[dict[str, Any]] = self._answer("GET", "/jobs")["jobs"]
        return jobs

    def reviews(self) -> list[dict[str, Any]]:
        """Return results of others that await review."""
        reviews: list[dict[str, Any]] = self._answer("GET", "/reviews")["reviews"]
        return reviews

    def review_report(self, job: str) -> AbstractContextManager[httpx.Response]:
        """Fetch the report of a result that awaits review."""
        return self._asked("GET", f"/reviews/{checked_id(job)}/report")

    def decide(self, job: str, decision: str, comment: str) -> dict[str, Any]:
        """Approve or reject a result."""
        body = {"decision": decision, "comment": comment}
        return self._answer("POST", f"/reviews/{checked_id(job)}", json=body)

    def cancel(self, job: str) -> dict[str, Any]:
        """End a job and remove its files."""
        return self._answer("DELETE", f"/jobs/{checked_id(job)}")

    def follow(self, job: str, progress: Progress, stage: Any) -> dict[str, Any]:
        """Wait for a job to end and show its progress. An interrupt cancels the job."""
        shown, pause = "", 0.1
        try:
            while True:
                state = self._patient(job)
                if state["state"] not in ("queued", "running"):
                    break
                now = "waiting" if state["state"] == "queued" else state["progress"]["stage"] or "starting"
                if now != shown:
                    stage(now)
                    shown, pause = now, 0.1
                if state["progress"]["total"]:
                    progress(state["progress"]["done"], state["progress"]["total"])
                time.sleep(pause)
                pause = min(pause * 1.3, 1.0)
        except KeyboardInterrupt:
            with suppress(CrowdveilError):
                self.cancel(job)
            raise
        if state["state"] == "failed":
            failed = from_json(state["error"])
            failed.files = state["files"]  # type: ignore[attr-defined]
            raise failed
        if state["state"] != "done":
            raise ServerError(f"the job {job} is {state['state']}; there is no result.")
        return state

    def _patient(self, job: str) -> dict[str, Any]:
        """Return a job; wait for a server that is away for a while."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.job(job)
            except ServerError:
                if time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)

    def fetch(self, job: dict[str, Any], target: Path, progress: Progress = no_progress) -> None:
        """Write a job's result to a file, and check its hash."""
        about, digest, arrived = job["result"], hashlib.sha256(), 0
        with target.open("wb") as file, self._asked("GET", f"/jobs/{checked_id(job['id'])}/result") as answer:
            for chunk in answer.iter_raw(CHUNK):
                digest.update(chunk)
                file.write(chunk)
                arrived += len(chunk)
                progress(arrived, about["bytes"])
        if digest.hexdigest() != about["sha256"]:
            raise ServerError("The SHA-256 of the fetched result differs from that of the server. Fetch it again.")

    def get(self, path: str) -> AbstractContextManager[httpx.Response]:
        """Request any other path of the server."""
        return self._asked("GET", path)

    @contextmanager
    def _asked(self, method: str, path: str, **request: Any) -> Iterator[httpx.Response]:
        """Send a request, and stream the answer; an error of the server is raised as an error here."""
        import httpx

        try:
            with self._client.stream(method, path, **request) as answer:
                if answer.status_code >= BAD_REQUEST:
                    failed = _error_in(answer.read(), answer.status_code)
                    failed.status = answer.status_code  # type: ignore[attr-defined]
                    raise failed
                yield answer
        except httpx.LocalProtocolError:
            raise InputError("A file changed its size while it was sent. Send it again.") from None
        except httpx.TransportError as error:
            if _is_about_tls(error):
                raise ServerError(
                    self.url, "The server has no trusted certificate, or does not use TLS. Check the address."
                ) from None
            raise ServerError(self.url, "The server does not answer. Check the address, and that it runs.") from None

    @cached_property
    def _client(self) -> httpx.Client:
        """Return the HTTP client. It retries only connecting, before anything is sent."""
        import httpx

        access = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        local = is_here(urlsplit(self.url).hostname or "")
        # Proxies of the environment are for other machines. Redirects are not followed, since no other host may get the token.
        client = httpx.Client(
            base_url=self.url, headers={"User-Agent": "crowdveil", **access}, timeout=httpx.Timeout(TIMEOUT_S, connect=10.0),
            transport=httpx.HTTPTransport(retries=RETRIES) if local else None, trust_env=not local, follow_redirects=False,
        )  # fmt: skip
        weakref.finalize(self, client.close)
        return client


class _CountedFile(io.FileIO):
    """A file that reports how many bytes are read."""

    def __init__(self, path: Path, report: Callable[[int], None]) -> None:
        super().__init__(path)
        self.report = report

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(-1 if size is None else size)
        self.report(len(chunk))
        return chunk


def _is_about_tls(error: BaseException | None) -> bool:
    """Return whether a connection failed because of TLS."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error is not None


def is_here(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked_id(job: str) -> str:
    """Return the id of a job, or raise if it is not one."""
    if not _ID.fullmatch(job):
        raise ParameterError("task", "Expected the id of a job, 32 characters from 0 to 9 and a to f.")
    return job


def _size(path: Path) -> int:
    if path.is_dir():
        raise InputError(path, "Expected a file, got a folder.")
    try:
        return path.stat().st_size
    except OSError:
        raise InputError(path, "there is no such file. Check its path.") from None


def _plain(filename: str) -> str:
    """Return a file name without characters that a form would have to escape."""
    return re.sub(r'[\x00-\x1f"\\]', "_", filename)


def _json(answer: httpx.Response) -> dict[str, Any]:
    try:
        content = json.loads(answer.read())
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise ServerError("The answer is not that of a crowdveil server. Check the address.")
    return content


def _error_in(text: bytes, status: int) -> CrowdveilError:
    try:
        return from_json(json.loads(text)["error"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServerError(f"the server refused the request (status {status}) and gave no reason.")


@contextmanager
def with_paths(files: Mapping[str, Any]) -> Iterator[None]:
    """Name files in errors by the user's paths: the server names a file by its file name, and a folder by its field."""
    try:
        yield
    except CrowdveilError as error:
        stored = getattr(error, "files", {})
        paths = {name: path for field, path in files.items() for name in (field, stored.get(field, Path(path).name))}
        if not isinstance(error.subject, Name) or error.subject.name not in paths:
            raise
        raise error.about(Path(paths[error.subject.name])) from None


def remote(url: str) -> Remote:
    """Return a server with the token from the environment."""
    return Remote(url, os.environ.get("CROWDVEIL_TOKEN", ""))
