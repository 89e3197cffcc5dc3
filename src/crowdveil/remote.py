"""The other end of `crowdveil serve`: sends files, follows a job, fetches what came of it. Needs nothing but Python."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import json
import os
import re
import secrets
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from crowdveil.errors import CrowdveilError, InputError, ParameterError, PromiseBrokenError
from crowdveil.progress import Progress, no_progress

PIECE = 1 << 18
PATIENCE_S = 60.0
"""How long a server may be away (it may be started anew) while a job is followed."""
TIMEOUT_S = 120.0
_ERRORS: dict[str, type[CrowdveilError]] = {"promise_broken": PromiseBrokenError, "bad_input": InputError}
_ID = re.compile(r"[0-9a-f]{32}")


class ServerError(CrowdveilError):
    """The server does not answer, or not as it should."""


@dataclass
class Remote:
    """A server.

    Attributes
    ----------
    url
        Its address.
    token
        What it is asked with; "" for none.
    """

    url: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(
                "server: wanted an address such as https://crowdveil.example.org or http://127.0.0.1:8000."
            )
        if parts.scheme == "http" and not _is_here(parts.hostname) and not os.environ.get("CROWDVEIL_INSECURE"):
            raise ParameterError(
                "server: data must not be sent over http:// to another machine; use https://, or set CROWDVEIL_INSECURE=1 "
                "where the way is safe by other means."
            )

    # What can be asked

    def start(
        self,
        room: str,
        name: str,
        parameters: dict[str, Any],
        files: Mapping[str, Path],
        progress: Progress = no_progress,
    ) -> dict[str, Any]:
        """Upload files, and put a job into the queue."""
        path = f"/{quote(room)}/{quote(name, safe='')}/jobs"
        job: dict[str, Any] = self.send(path, {"parameters": json.dumps(parameters)}, files, progress)
        return job

    def send(
        self, path: str, texts: Mapping[str, str], files: Mapping[str, Path], progress: Progress = no_progress
    ) -> dict[str, Any]:
        """Send a form, its files piece by piece; what the server answers."""
        boundary = secrets.token_hex(16)
        parts = [_text_part(boundary, n, t) for n, t in texts.items()]
        sizes = {n: _size(path) for n, path in files.items()}
        heads = {n: _file_head(boundary, n, path.name) for n, path in files.items()}
        end = f"--{boundary}--\r\n".encode()
        length = sum(map(len, parts)) + sum(len(heads[n]) + sizes[n] + 2 for n in files) + len(end)

        def body() -> Iterator[bytes]:
            sent = 0
            yield from parts
            for name, file in files.items():
                yield heads[name]
                with file.open("rb") as opened:
                    left = sizes[name]
                    while left and (piece := opened.read(min(PIECE, left))):
                        left -= len(piece)
                        sent += len(piece)
                        yield piece
                        progress(sent, sum(sizes.values()))
                if left:
                    raise InputError(f"{file}: the file became shorter while it was sent; send it again.")
                yield b"\r\n"
            yield end

        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}", "Content-Length": str(length)}
        with self._asked("POST", path, body(), headers) as answer:
            return _json(answer)

    def job(self, job: str) -> dict[str, Any]:
        """What is known of a job."""
        with self._asked("GET", f"/jobs/{_checked_id(job)}") as answer:
            return _json(answer)

    def reviews(self) -> list[dict[str, Any]]:
        """Results of others that await review."""
        with self._asked("GET", "/reviews") as answer:
            found: list[dict[str, Any]] = _json(answer)["reviews"]
            return found

    @contextmanager
    def review_report(self, job: str) -> Iterator[http.client.HTTPResponse]:
        """The report of a result that awaits review."""
        with self._asked("GET", f"/reviews/{_checked_id(job)}/report") as answer:
            yield answer

    def decide(self, job: str, decision: str, comment: str) -> dict[str, Any]:
        """Approve or reject a result."""
        body = json.dumps({"decision": decision, "comment": comment}).encode()
        with self._asked("POST", f"/reviews/{_checked_id(job)}", body, {"Content-Type": "application/json"}) as answer:
            return _json(answer)

    def cancel(self, job: str) -> dict[str, Any]:
        """End a job, and have its files removed."""
        with self._asked("DELETE", f"/jobs/{_checked_id(job)}") as answer:
            return _json(answer)

    def follow(self, job: str, progress: Progress, stage: Any) -> dict[str, Any]:
        """Wait for a job's end, and show how far it is meanwhile. An interrupt ends the job too."""
        shown, pause = "", 0.1
        try:
            while True:
                seen = self._patient(job)
                if seen["state"] not in ("queued", "running"):
                    break
                now = "waiting" if seen["state"] == "queued" else seen["progress"]["stage"] or "starting"
                if now != shown:
                    stage(now)
                    shown, pause = now, 0.1
                if seen["progress"]["total"]:
                    progress(seen["progress"]["done"], seen["progress"]["total"])
                time.sleep(pause)
                pause = min(pause * 1.3, 1.0)
        except KeyboardInterrupt:
            with suppress(CrowdveilError):
                self.cancel(job)
            raise
        if seen["state"] == "failed":
            raise _error(seen["error"], seen["files"])
        if seen["state"] != "done":
            raise ServerError(f"the job {job} is {seen['state']}; there is no result.")
        return seen

    def _patient(self, job: str) -> dict[str, Any]:
        """A job's row; a server that is away is waited for a while."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.job(job)
            except ServerError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.5)

    def fetch(self, job: dict[str, Any], target: Path, progress: Progress = no_progress) -> None:
        """Write a job's result to a file, once it is sure that all of it came as it was made."""
        digest, came, about = hashlib.sha256(), 0, job["result"]
        with self._asked("GET", f"/jobs/{job['id']}/result") as answer, target.open("wb") as file:
            while piece := answer.read(PIECE):
                digest.update(piece)
                file.write(piece)
                came += len(piece)
                progress(came, about["bytes"])
        if digest.hexdigest() != about["sha256"]:
            raise ServerError("the result came in another form than it was made; fetch it again.")

    @contextmanager
    def get(self, path: str) -> Iterator[http.client.HTTPResponse]:
        """Any other address of the server."""
        with self._asked("GET", path) as answer:
            yield answer

    @contextmanager
    def _asked(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        parts = urlsplit(self.url)
        connection = self._connection(parts.scheme, parts.hostname or "", parts.port)
        access = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        try:
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have refused the rest, and said why
                connection.request(method, parts.path.rstrip("/") + path, body, {**access, **(headers or {})})
            answer = connection.getresponse()
            if answer.status >= 400:
                raise _error(_error_in(answer.read(1 << 20), answer.status))
            yield answer
        except ssl.SSLError:
            raise ServerError(
                f"{self.url}: the server's certificate is not to be trusted, or it speaks no TLS."
            ) from None
        except (OSError, http.client.HTTPException):
            raise ServerError(f"{self.url}: the server does not answer; check the address, and that it runs.") from None
        finally:
            connection.close()

    @staticmethod
    def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
        if scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_id(job: str) -> str:
    if not _ID.fullmatch(job):
        raise ParameterError("task: wanted the id of a job, 32 signs from 0 to 9 and a to f.")
    return job


def _size(path: Path) -> int:
    if path.is_dir():
        raise InputError(f"{path}: wanted a file, but this is a folder.")
    try:
        return path.stat().st_size
    except OSError:
        raise InputError(f"{path}: there is no such file.") from None


def _text_part(boundary: str, name: str, text: str) -> bytes:
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()


def _file_head(boundary: str, name: str, filename: str) -> bytes:
    plain = re.sub(r'[\x00-\x1f"\\]', "_", filename)
    return (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{plain}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()


def _json(answer: http.client.HTTPResponse) -> dict[str, Any]:
    try:
        found = json.loads(answer.read(1 << 26))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ServerError("the server answers otherwise than a crowdveil server; check its address.")
    return found


def _error_in(text: bytes, status: int) -> dict[str, str]:
    try:
        error = json.loads(text)["error"]
        return {"code": str(error["code"]), "message": str(error["message"])}
    except (ValueError, KeyError, TypeError):
        return {"code": "server", "message": f"the server refuses ({status}), and does not say why."}


def _error(error: dict[str, str], files: Mapping[str, str] | None = None) -> CrowdveilError:
    """What the server says, as if it had happened here."""
    found = _ERRORS.get(error["code"], ParameterError)(error["message"])
    found.files, found.code = dict(files or {}), error["code"]  # type: ignore[attr-defined]
    return found


@contextmanager
def with_paths(given: Mapping[str, Any]) -> Iterator[None]:
    """Have sentences about files name them as the user did: the server knows them by their names alone."""
    try:
        yield
    except CrowdveilError as error:
        names = {**{f: Path(str(p)).name for f, p in given.items()}, **getattr(error, "files", {})}
        for name, path in given.items():
            # What is sent as a folder is called by its field there; a sentence about a parameter of that name is left as it is.
            for called in (names[name], *(() if getattr(error, "code", "") == "bad_parameter" else (name,))):
                if str(error).startswith(f"{called}: "):
                    raise type(error)(str(path) + str(error)[len(called) :]) from None
        raise


def default_server() -> str:
    """The server that the environment names, "" for none."""
    return os.environ.get("CROWDVEIL_SERVER", "")


def remote(url: str) -> Remote:
    """A server with the token of the environment."""
    return Remote(url, os.environ.get("CROWDVEIL_TOKEN", ""))
