"""A database of an earlier schema is recognized and migrated after a backup, a newer one is refused; on both databases."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from crowdveil.errors import ParameterError
from crowdveil.server.queue import migrate
from crowdveil.server.queue.database import Database, open_database
from crowdveil.server.queue.schema import FIRST, REVISION
from crowdveil.server.queue.store import Store
from crowdveil.server.tokens import Tokens

if TYPE_CHECKING:
    from alembic.config import Config

ANNA = "aaaaaaaaaaaaaaaa"
SECRET = "cv_annas-secret-of-the-fixture"


@pytest.fixture
def older(database_url: str) -> Iterator[Database]:
    """A database as the last version without revisions left it."""
    database = open_database(database_url)
    kind = "sqlite" if database.is_sqlite else "postgres"
    script = Path(__file__).with_name(f"first_schema_{kind}.sql").read_text()
    if database.is_sqlite:
        held = sqlite3.connect(str(database.engine.url.database))
        held.executescript(script)
        held.close()
    else:
        with database.engine.begin() as connection:
            connection.connection.driver_connection.execute(script)  # type: ignore[union-attr]
    yield database
    database.close()


def columns(database: Database) -> dict[str, Any]:
    """What tables look like: columns with types, and indexes."""
    with database.engine.connect() as connection:
        seen = sa.inspect(connection)
        keys = {table: seen.get_pk_constraint(table)["constrained_columns"] for table in seen.get_table_names()}
        return {
            table: (
                keys[table],
                # SQLite takes a key for one that may be missing unless it is declared otherwise.
                {
                    c["name"]: (str(c["type"]), c["nullable"] and c["name"] not in keys[table])
                    for c in seen.get_columns(table)
                },
                {i["name"]: i["column_names"] for i in seen.get_indexes(table) if not i.get("duplicates_constraint")},
                sorted(tuple(u["column_names"]) for u in seen.get_unique_constraints(table)),
            )
            for table in seen.get_table_names()
        }


def backups(database: Database) -> list[Path]:
    path = Path(str(database.engine.url.database))
    return sorted(path.parent.glob(f"{path.name}.*.backup"))


def _config() -> Config:
    from alembic.config import Config  # slow to import

    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).with_name("migrations")))
    return config


def test_the_newest_revision_is_the_one_that_the_program_knows() -> None:
    from alembic.script import ScriptDirectory

    config = _config()
    assert ScriptDirectory.from_config(config).get_current_head() == REVISION


def test_an_older_database_is_migrated_and_keeps_what_is_in_it(older: Database) -> None:
    store = Store(older, migrate=True, backed_up=True)
    jobs = store.of_owner(ANNA)
    assert [job.state for job in reversed(jobs)] == ["done", "failed", "running", "cancelled", "queued"]
    done = jobs[-1]
    assert (done.bytes, done.review, done.parameters) == (1234, None, {"seed": 0}) and store.disk(ANNA) == 1234
    caller = Tokens(store).caller(SECRET)
    assert caller is not None and caller.id == ANNA and caller.scopes == {"submit", "read"}
    assert caller.limits.max_running == 2
    assert len(store.log()) == 11
    claimed = store.claim("w", 60)
    assert claimed is not None and claimed.parameters == {"seed": 4}


def test_a_migrated_database_is_as_a_new_one(older: Database, tmp_path: Path) -> None:
    Store(older, migrate=True, backed_up=True)
    migrated = columns(older)
    if older.is_sqlite:
        fresh = open_database(f"sqlite:///{tmp_path / 'fresh.sqlite'}")
    else:
        with older.transaction() as do:
            for table in ("jobs", "tokens", "log", "alembic_version"):
                do(f"DROP TABLE {table}")
        fresh = older
    Store(fresh)
    assert columns(fresh) == migrated
    fresh.close()


def test_the_first_revision_is_the_schema_before_revisions(older: Database, tmp_path: Path) -> None:
    before = columns(older)
    if not older.is_sqlite:
        with older.transaction() as do:
            for table in ("jobs", "tokens", "log"):
                do(f"DROP TABLE {table}")
    made = open_database(f"sqlite:///{tmp_path / 'made.sqlite'}") if older.is_sqlite else older
    config = _config()
    from alembic import command

    with made.engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, FIRST)
    after = columns(made)
    del after["alembic_version"]
    assert after == before
    made.close()


def test_a_file_is_copied_before_it_is_migrated(older: Database) -> None:
    if not older.is_sqlite:
        pytest.skip("the operator makes the backup of a server")
    Store(older, migrate=True)
    (copy,) = backups(older)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600 and copy.name.startswith("jobs.sqlite.0001-")
    held = sqlite3.connect(copy)
    assert held.execute("SELECT count(*) FROM jobs").fetchone() == (5,)
    assert "bytes" not in {row[1] for row in held.execute("PRAGMA table_info(jobs)")}
    held.close()
    Store(older, migrate=True)
    assert backups(older) == [copy]  # once is enough


def test_only_a_server_that_is_asked_to_migrates(older: Database) -> None:
    before = columns(older)
    wanted = "start crowdveil serve, which" if older.is_sqlite else "crowdveil serve --migrate"
    with pytest.raises(ParameterError, match=wanted):
        Store(older)
    if not older.is_sqlite:
        with pytest.raises(ParameterError, match="make a backup with pg_dump"):
            Store(older, migrate=True)
    assert columns(older) == before


def test_a_newer_schema_is_refused_and_left_alone(store: Store) -> None:
    store.db.do("UPDATE alembic_version SET version_num = '9999'")
    for how in ({}, {"migrate": True, "backed_up": True}):
        with pytest.raises(ParameterError, match="9999, but this version of crowdveil knows only up to"):
            Store(store.db, **how)
    assert store.db.do(sa.select(sa.text("version_num")).select_from(sa.text("alembic_version"))) == [
        {"version_num": "9999"}
    ]


def test_a_migration_that_fails_changes_nothing(older: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from alembic import command

    upgrade = command.upgrade

    def broken(config: Config, revision: str) -> None:
        upgrade(config, revision)
        raise RuntimeError("in the middle")

    before = columns(older)
    monkeypatch.setattr(command, "upgrade", broken)
    with pytest.raises(RuntimeError):
        Store(older, migrate=True, backed_up=True)
    assert columns(older) == before
    monkeypatch.undo()
    assert len(Store(older, migrate=True, backed_up=True).of_owner(ANNA)) == 5
