"""Send large files to a server in chunks: a broken connection costs one chunk, and the file goes on where it ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, InputError

CHUNK = 4 << 20
"""Bytes of a chunk. Smaller files are sent in the form of their job."""
PATIENCE_S = 60.0
"""How long a server may take no chunk of a file before the transfer is given up."""
AGAIN_S = 0.5
CONFLICT, UNAVAILABLE = 409, 503


class ServerError(CrowdveilError):
    """The server does not answer, or not as it should."""


@dataclass
class ChunkedTransfer:
    """Files on their way to a server.

    Attributes
    ----------
    ask
        Sends a request, with the method and the path first, and returns the answer as JSON.
    sent
        Is called with the number of bytes that arrived since the last call.
    """

    ask: Callable[..., dict[str, Any]]
    sent: Callable[[int], None]

    @contextmanager
    def uploaded(self, files: Mapping[str, tuple[str, Path]]) -> Iterator[dict[str, str]]:
        """Send files, each a name and a path by field; yield their ids, and remove the uploads afterwards.

        A job that was made of an upload keeps its file.
        """
        ids: dict[str, str] = {}
        try:
            for field, (name, path) in files.items():
                size = path.stat().st_size
                ids[field] = str(self.ask("POST", "/uploads", json={"name": name, "bytes": size})["id"])
                self._send(ids[field], path, size)
            yield ids
        finally:
            for upload in ids.values():
                with suppress(CrowdveilError):  # it ends by itself after a while
                    self.ask("DELETE", f"/uploads/{upload}")

    def _send(self, upload: str, path: Path, size: int) -> None:
        """Send a file from its beginning; after a failure, continue from the bytes that the server has."""
        received, until = 0, time.monotonic() + PATIENCE_S
        with path.open("rb") as file:
            while received < size:
                file.seek(received)
                chunk = file.read(min(CHUNK, size - received))
                if not chunk:
                    raise InputError(path, "the file became shorter while it was sent; send it again.")
                headers = {"Upload-Offset": str(received), "Content-Type": "application/octet-stream"}
                try:
                    now = self.ask("PATCH", f"/uploads/{upload}", content=chunk, headers=headers)["received"]
                except CrowdveilError as error:
                    if not _passing(error) or time.monotonic() > until:
                        raise
                    time.sleep(AGAIN_S)
                    now = self._received(upload, received)
                if now > received:
                    until = time.monotonic() + PATIENCE_S
                self.sent(now - received)
                received = now

    def _received(self, upload: str, before: int) -> int:
        """Return how many bytes the server has; as before where it does not answer."""
        try:
            return int(self.ask("GET", f"/uploads/{upload}")["received"])
        except CrowdveilError as error:
            if not _passing(error):
                raise
            return before


def _passing(error: CrowdveilError) -> bool:
    """Return whether a request may succeed later: no answer, another request at the same upload, a database that is away."""
    return isinstance(error, ServerError) or getattr(error, "status", None) in (CONFLICT, UNAVAILABLE)
