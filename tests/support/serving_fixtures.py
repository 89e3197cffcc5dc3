"""Both databases, and a service that is started for tests; a plugin, since other tests take names from the one conftest."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from serving import Running

    from crowdveil.server.queue.database import Database
    from crowdveil.server.queue.files import Files
    from crowdveil.server.queue.store import Store
    from crowdveil.server.service import Service


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL cluster of our own in a temporary folder; it refuses to run as root, so another user owns it then."""
    from serving import free_port

    programs = {name: shutil.which(name) for name in ("initdb", "pg_ctl", "postgres")}
    if not all(programs.values()):
        pytest.skip("PostgreSQL is not installed")
    how: dict[str, object] = {}
    folder = Path(tempfile.mkdtemp(prefix="crowdveil-pg-"))
    if os.geteuid() == 0:
        try:
            owner = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        how = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    port, data = free_port(), folder / "data"

    def call(*command: object) -> None:
        subprocess.run(  # type: ignore[call-overload]
            [str(c) for c in command],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            **how,
        )

    call(programs["initdb"], "-D", data, "-A", "trust", "-U", "postgres", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    call(programs["pg_ctl"], "-D", data, "-o", options, "-w", "-l", folder / "log", "start")
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        call(programs["pg_ctl"], "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'jobs.sqlite'}"
    from crowdveil.server.queue.database import open_database

    url: str = request.getfixturevalue("postgres")
    _emptied(open_database(url))
    return url


def _emptied(database: Database) -> None:
    import sqlalchemy as sa

    with database.transaction() as do:
        for table in ("jobs", "tokens", "log", "alembic_version"):
            do(sa.text(f"DROP TABLE IF EXISTS {table}"))
    database.close()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """A store on each kind of database."""
    from crowdveil.server.queue.database import open_database
    from crowdveil.server.queue.store import Store

    found = Store(open_database(database_url))
    yield found
    found.db.close()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Folders of jobs."""
    from crowdveil.server.queue.files import Files

    return Files(tmp_path / "data")


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service with two workers and two tokens, for all tests that leave it as it was."""
    from serving import Running

    service = Running(tmp_path_factory.mktemp("service"), "--max-upload-mib", "8")
    for name in ("anna", "bert"):
        service.make_token(name)
    service.start()
    yield service
    service.stop()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """An open service on SQLite, which runs no jobs; this machine needs no token."""
    from serving import opened

    with opened(tmp_path / "data") as found:
        yield found


@pytest.fixture
def service_on_each(tmp_path: Path, database_url: str) -> Iterator[Service]:
    """The same on each kind of database."""
    from serving import opened

    with opened(tmp_path / "data", database_url) as found:
        yield found


@pytest.fixture
def inspected_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Preview files in this process, which is quicker."""
    from crowdveil.errors import CrowdveilError
    from crowdveil.server.responses import ApiError
    from crowdveil.server.routes import preview
    from crowdveil.server.workers.inspect_upload import work

    def here(request: dict[str, Any], folder: Path, *_: Any) -> dict[str, Any]:
        monkeypatch.chdir(folder)
        try:
            return work(json.loads(json.dumps(request)))
        except CrowdveilError as error:
            raise ApiError(422, "bad_input", str(error)) from None

    monkeypatch.setattr(preview, "_inspected", here)
