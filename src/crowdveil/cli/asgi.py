"""The service as an ASGI app for any server: `uvicorn crowdveil.cli.asgi:app`.

The data directory and the database are those of `CROWDVEIL_DATA_DIR` and `CROWDVEIL_DATABASE_URL`. Which address the server
listens on is not known here, so that tokens are always needed. Jobs are run by `crowdveil worker`.
"""

from __future__ import annotations

import os
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdveil.compat.mobidatalab.routes import add_routes
from crowdveil.server.app import make_app
from crowdveil.server.serve import check_address, keep_tidy
from crowdveil.server.settings import Settings, default_folder
from crowdveil.server.workers.sandbox import check_confinement

if TYPE_CHECKING:
    from fastapi import FastAPI

ANY_ADDRESS = "0.0.0.0"
"""Nothing is bound to it: it says that other machines may reach the service."""


@cache
def make_service_app() -> FastAPI:
    """Return the app of the service that the environment names; raise where there are no tokens."""
    folder, database = (os.environ.get(f"CROWDVEIL_{name}") for name in ("DATA_DIR", "DATABASE_URL"))
    settings = Settings((Path(folder) if folder else default_folder()).absolute(), database, host=ANY_ADDRESS)
    service = settings.open()
    check_address(service)
    check_confinement(local=False)
    tempfile.tempdir = str(service.files.incoming)  # files of a form that is coming in, which have no name
    threading.Thread(target=keep_tidy, args=(service, threading.Event()), name="tidy", daemon=True).start()
    return make_app(service, [add_routes])


def __getattr__(name: str) -> Any:
    """Make `app` when a server asks for it, so that importing this module opens nothing."""
    if name == "app":
        return make_service_app()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
