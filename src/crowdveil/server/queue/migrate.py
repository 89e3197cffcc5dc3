"""Which revision a database has, and how an older one is brought up to date: SQLite after a copy of the file, PostgreSQL when
the operator says so, for only they can make a backup of it."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from crowdveil.errors import OutputError, ParameterError
from crowdveil.server.queue.database import Database, DatabaseUnavailableError, or_away
from crowdveil.server.queue.schema import FIRST, REVISION, metadata

_VERSION = sa.table("alembic_version", sa.column("version_num", sa.String))
NEWER = (
    "the database has schema revision {found}, but this version of crowdveil knows only up to {known}; upgrade crowdveil, or "
    "restore the backup that was made before the database was migrated."
)
OLDER = (
    "the database has schema revision {found}, but this version of crowdveil needs {known}; stop all servers and workers, and "
    "start crowdveil serve, which migrates it."
)
OLDER_POSTGRES = (
    "the database has schema revision {found}, but this version of crowdveil needs {known}; stop all servers and workers, make "
    "a backup with pg_dump, and start crowdveil serve --migrate."
)


def prepare(database: Database, *, migrate: bool = False, backed_up: bool = False, create: bool = True) -> None:
    """Make the tables of an empty database, or see that those that are there have the newest revision.

    With `migrate`, an older one is migrated: a file after a copy of it, a server where the operator has `backed_up`. Without
    `create`, tables are not made.
    """
    with or_away():
        if _revision(database) == REVISION:
            return
        with database.engine.begin() as connection:
            database.lock(connection.execute)  # two that begin at once would both make the tables
            found = _revision_in(connection)
            if found is None and not create:
                return
            if found is None:
                metadata.create_all(connection)
                _stamp(connection, REVISION)
            elif found != REVISION:
                _upgrade(database, connection, found, migrate=migrate, backed_up=backed_up)


def _upgrade(database: Database, connection: sa.Connection, found: str, *, migrate: bool, backed_up: bool) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    known = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    if found not in known:
        raise ParameterError(NEWER.format(found=found, known=REVISION))
    if database.is_sqlite:
        if not migrate:
            raise ParameterError(OLDER.format(found=found, known=REVISION))
        _copy(Path(str(database.engine.url.database)), found)
    elif not (migrate and backed_up):
        raise ParameterError(OLDER_POSTGRES.format(found=found, known=REVISION))
    config.attributes["connection"] = connection
    if not sa.inspect(connection).has_table("alembic_version"):
        command.stamp(config, FIRST)
    command.upgrade(config, REVISION)


def _copy(path: Path, found: str) -> Path:
    """Copy a database file next to it; only its owner can read the copy."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    target = path.with_name(f"{path.name}.{found}-{moment}.backup")
    wrong = OutputError(target, "the backup before the migration cannot be written; free some space.")
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        raise wrong from None
    try:
        source, copy = sqlite3.connect(path), sqlite3.connect(target)
        try:
            source.backup(copy)
        finally:
            copy.close()
            source.close()
    except (OSError, sqlite3.Error):
        target.unlink(missing_ok=True)
        raise wrong from None
    return target


def _revision(database: Database) -> str | None:
    """The revision, read without a lock; None where there are no tables."""
    try:
        rows = database.do(sa.select(_VERSION.c.version_num))
    except (
        DatabaseUnavailableError,
        sa.exc.ProgrammingError,
    ):  # there is no such table, or nothing answers, which the next statement reports
        return None
    return str(rows[0]["version_num"]) if rows else None


def _revision_in(connection: sa.Connection) -> str | None:
    there = set(sa.inspect(connection).get_table_names())
    if "alembic_version" in there:
        found = connection.execute(sa.select(_VERSION.c.version_num)).scalar()
        if found is not None:
            return str(found)
    return FIRST if "jobs" in there else None


def _stamp(connection: sa.Connection, revision: str) -> None:
    """As Alembic has it, without loading Alembic."""
    column = sa.Column("version_num", sa.String(32), nullable=False)
    table = sa.Table(
        "alembic_version", sa.MetaData(), column, sa.PrimaryKeyConstraint(column, name="alembic_version_pkc")
    )
    table.create(connection, checkfirst=True)
    connection.execute(table.delete())
    connection.execute(table.insert().values(version_num=revision))
