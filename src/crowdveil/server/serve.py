"""Run the web app, its workers and the cleanup task on one machine."""

from __future__ import annotations

import logging
import os
import signal
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from crowdveil.errors import MissingExtraError, Option, OutputError, ParameterError, counted
from crowdveil.server import logs
from crowdveil.server.settings import Service, Settings
from crowdveil.server.workers.sandbox import check_confinement
from crowdveil.server.workers.supervisor import Supervisor

TIDY_EVERY_S = 30.0
PURGE_AFTER_S = 3600.0
"""The quarantine is left alone for this long after a start."""
REFUSED = (
    "{host} can be reached from other machines, and there are no tokens; make one with crowdveil token create NAME, or "
    "listen on 127.0.0.1."
)
NO_TOKENS = (
    "the service had tokens, and its database has none, so all access is denied; restore the database from a backup, or "
    "make a token with crowdveil token create NAME."
)
NO_REVIEWERS = (
    "there are no tokens, so no result could be approved; make some with crowdveil token create NAME, one of them "
    "with --scope review."
)
TLS = (
    "note: put a proxy with TLS in front of this address, for what is sent is not encrypted here (see docs/operate-the-service.md)."
)


def tidy(service: Service, *, purge: bool = False) -> None:
    """Remove what is no longer needed; a database that is away for a while must not end the thread that does this."""
    try:
        service.tidy(purge=purge)
    except Exception as error:
        logs.say("tidy", "old files could not be removed", logging.WARNING, **logs.located(error))


def keep_tidy(service: Service, stopping: threading.Event) -> None:
    """Remove what is no longer needed, now and then, until stopped."""
    started = time.monotonic()
    while not stopping.is_set():
        tidy(service, purge=time.monotonic() - started > PURGE_AFTER_S)
        stopping.wait(TIDY_EVERY_S)


def check_address(service: Service) -> None:
    """Raise where access would not be controlled."""
    if not service.settings.is_local and not service.tokens.any():
        raise ParameterError(Option("host"), REFUSED.format(host=service.settings.host))
    if service.needs_tokens() and not service.tokens.any():
        raise ParameterError(Option("data_dir"), NO_TOKENS)


def check_reviewers(service: Service) -> None:
    """Raise where results would wait for a second person that there cannot be."""
    if service.settings.four_eyes and not service.tokens.any():
        raise ParameterError(Option("four_eyes"), NO_REVIEWERS)


def serve(settings: Settings, say: Any, extra_routes: Sequence[Callable[[Any], None]] = ()) -> None:
    """Serve until stopped."""
    try:
        import uvicorn

        from crowdveil.server.app import make_app
    except ImportError:
        raise MissingExtraError("fastapi", "server", "The service") from None
    logs.configure(settings.log_format)
    service = settings.open(accept_new_database=settings.accept_new_database)
    check_address(service)
    if (warning := check_confinement(local=settings.is_local)) is not None:
        say(f"WARNING: {warning}")
    check_reviewers(service)
    tempfile.tempdir = str(service.files.incoming)  # files of a form that is coming in, which have no name
    app = make_app(service, extra_routes)
    listening = listen(settings)
    if settings.accept_new_database:
        service.store.say("operator", "accepted a new database")
    supervisor, tidying = Supervisor(service), threading.Event()
    supervisor.start()
    threading.Thread(target=keep_tidy, args=(service, tidying), name="tidy", daemon=True).start()
    logs.say("start", "the service starts", workers=settings.workers)
    where = _address(settings, listening)
    say(f"{where}: ready, with {counted(settings.workers, 'worker')}; files in {settings.data}")
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
        tidying.set()
        supervisor.stop()
        with suppress(Exception):
            service.refusals.flush(all_of_them=True)
        if settings.socket is not None:
            settings.socket.unlink(missing_ok=True)
        logs.say("stop", "the service stopped")


def _address(settings: Settings, listening: socket.socket) -> str:
    """Return where the service listens, for people."""
    if settings.socket is not None:
        return f"unix:{settings.socket}"
    shown = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"http://{shown}:{listening.getsockname()[1]}"


def listen(settings: Settings) -> socket.socket:
    """Open the socket that the service listens on."""
    if settings.socket is not None:
        return _listen_unix(settings.socket, int(settings.socket_mode, 8))
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named: asyncio sets TCP_NODELAY only on connections whose protocol it knows to be TCP.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise OutputError(
            Option("port"), f"{settings.port} of {settings.host} cannot be had ({error.strerror}); take another."
        ) from None
    listening.listen(2048)
    return listening


def _listen_unix(path: Path, mode: int) -> socket.socket:
    """Open a Unix socket; one that a server left behind is replaced, and one that is in use is not."""
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o777 & ~mode)
    try:
        if path.exists():
            if not stat.S_ISSOCK(path.stat().st_mode):
                raise OutputError(Option("socket"), f"{path} is a file, and no socket; name another path.")
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asked:
                if asked.connect_ex(str(path)) == 0:
                    raise OutputError(Option("socket"), f"{path} is in use by another server; name another path.")
            path.unlink()
        listening.bind(str(path))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        raise OutputError(Option("socket"), f"{path} cannot be had ({error.strerror}); name another path.") from None
    except OutputError:
        listening.close()
        raise
    finally:
        os.umask(before)
    return listening
