"""All of it on one machine: the app, worker processes that are started again when they die, and the keeping of order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from crowdveil.errors import MissingExtraError, OutputError, ParameterError
from crowdveil.server.sandbox.trial import check_sandbox
from crowdveil.server.settings import Service, Settings

TIDY_EVERY_S = 30.0
WATCH_EVERY_S = 0.2
AGAIN_AFTER_S = 1.0
REFUSED = (
    "host: {host} can be reached from other machines, and there are no tokens; make one with crowdveil token create NAME, or "
    "listen on 127.0.0.1."
)
TLS = (
    "note: put a proxy with TLS in front of this address, for what is sent is not encrypted here (see docs/service.md)."
)


class Keeper:
    """Keeps the crew of workers alive, and the house in order."""

    def __init__(self, service: Service, arguments: list[str]) -> None:
        self.service, self.arguments = service, arguments
        self.crew: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def _keep(self) -> None:
        # The crew ends when the thread that started it ends, so all of it happens in this one.
        tidied, begun = -TIDY_EVERY_S, -AGAIN_AFTER_S
        while True:
            if self.crew is None or self.crew.poll() is not None:
                self._stopping.wait(
                    max(0.0, begun + AGAIN_AFTER_S - time.monotonic())
                )  # what dies at once is not hurried
                self.crew, begun = self._start(), time.monotonic()
            if time.monotonic() - tidied > TIDY_EVERY_S:
                with suppress(Exception):  # a data base that is away for a while must not end this thread
                    self.service.tidy()
                tidied = time.monotonic()
            if self._stopping.wait(WATCH_EVERY_S):
                break
        self.crew.terminate()
        try:
            self.crew.wait(10)
        except subprocess.TimeoutExpired:
            self.crew.kill()
            self.crew.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        code = "from crowdveil.cli.main import main; main()"
        command = [sys.executable, "-c", code, "worker", "--parent", str(os.getpid()), *self.arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL)

    def stop(self) -> None:
        """End all workers; their jobs go back into the queue."""
        self._stopping.set()
        self._thread.join(30)


def check_address(service: Service) -> None:
    """Raise where anybody could come in."""
    if not service.settings.is_local and not service.tokens.any():
        raise ParameterError(REFUSED.format(host=service.settings.host))


def serve(settings: Settings, workers: int, say: Any) -> None:
    """Serve until told to stop."""
    try:
        import uvicorn

        from crowdveil.server.app import make_app
    except ImportError:
        raise MissingExtraError("fastapi", "server", "The service") from None
    service = settings.open()
    check_address(service)
    check_sandbox(settings.require_sandbox, say)
    listening = _listen(settings)
    arguments = ["--data-dir", str(settings.data), "--lease", str(settings.lease_s), "--number", str(workers)]
    if settings.database_url is not None:
        os.environ["CROWDVEIL_DATABASE_URL"] = (
            settings.database_url
        )  # not as an argument, which everybody on the machine can read
    if settings.require_sandbox:
        arguments.append("--require-sandbox")
    if settings.memory_bytes is not None:
        arguments += ["--max-memory-mib", str(settings.memory_bytes >> 20)]
    keeper = Keeper(service, arguments)
    keeper.start()
    port = listening.getsockname()[1]
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    say(f"http://{shown}:{port}: ready, with {workers} worker{'s' if workers != 1 else ''}; files in {settings.data}")
    if not settings.is_local:
        say(TLS)
    config = uvicorn.Config(
        make_app(service), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=5,
        limit_concurrency=1000, timeout_keep_alive=30,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        keeper.stop()


def _listen(settings: Settings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        raise OutputError(
            f"port: {settings.port} of {settings.host} cannot be had ({error.strerror}); take another."
        ) from None
    listening.listen(2048)
    return listening
