"""Run the web app, its workers and the cleanup task on one machine."""

from __future__ import annotations

import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import uvicorn

from crowdveil.errors import OutputError, ParameterError, Text, counted
from crowdveil.server import logs
from crowdveil.server.app import make_app
from crowdveil.server.service import Service, open_service
from crowdveil.server.settings import Settings
from crowdveil.server.workers.sandbox import check_confinement, confinement
from crowdveil.server.workers.supervisor import Supervisor

TIDY_EVERY_S = 30.0
FIRST = "the first token; it is not shown again"
TLS = "note: requests are not encrypted here; put a proxy with TLS in front of this address (see docs/operate-the-service.md)."


def keep_tidy(service: Service) -> None:
    """Remove old files at intervals, as long as the process lives."""
    while True:
        service.tidy()
        time.sleep(TIDY_EVERY_S)


def first_token(service: Service) -> str | None:
    """Create the first token of a new service, and return it."""
    if service.settings.no_auth or service.tokens.any():
        return None
    with suppress(ParameterError):  # another server of the same database has just created it
        return service.tokens.create("first")
    return None


def start_app(settings: Settings, extra_routes: Sequence[Callable[[Any], None]]) -> tuple[Service, Any]:
    """Open a service, start its cleanup thread, and return it with its app."""
    service = open_service(settings)
    tempfile.tempdir = str(service.files.incoming)  # for the unnamed files of a form in progress
    threading.Thread(target=keep_tidy, args=(service,), name="tidy", daemon=True).start()
    return service, make_app(service, extra_routes)


def serve(settings: Settings, say: Callable[[str], None], extra_routes: Sequence[Callable[[Any], None]] = ()) -> None:
    """Serve until stopped."""
    logs.configure(settings.log_format)
    warning = check_confinement(local=settings.is_local)
    say(f"jobs are confined by: {confinement() or 'nothing'}")
    if warning is not None:
        say(f"WARNING: {warning}")
    service, app = start_app(settings, extra_routes)
    listening = listen(settings)
    if (token := first_token(service)) is not None:
        say(f"{token}: {FIRST}")
    supervisor = Supervisor(service)
    supervisor.start()
    workers = settings.jobs_at_once
    logs.say("start", "the service starts", workers=workers)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    where = f"http://{host}:{listening.getsockname()[1]}"
    say(f"{where}: ready, with {counted(workers, 'worker')}; files in {settings.folder}")
    if not settings.is_local:
        say(TLS)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=5, timeout_keep_alive=30,
        ws="none", lifespan="off", proxy_headers=False,
    )  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
    finally:
        supervisor.stop()
        logs.say("stop", "the service stopped")


def listen(settings: Settings) -> socket.socket:
    """Open the socket that the service listens on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name TCP as their protocol.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise OutputError(
            Text(
                "Cannot listen on {host}:{number} ({reason}). Choose another {port}.",
                host=settings.host,
                number=settings.port,
                reason=error.strerror,
            )
        ) from None
    listening.listen(2048)
    return listening
