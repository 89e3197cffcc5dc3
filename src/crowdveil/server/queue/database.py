"""The database of the service: SQLite for one machine, PostgreSQL for several. SQLAlchemy handles the differences.

Statements are SQLAlchemy Core expressions over the tables in `schema`.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event
from sqlalchemy.exc import InterfaceError, OperationalError

from crowdveil.errors import CrowdveilError, MissingExtraError, Option, ParameterError

Row = dict[str, Any]
Do = Callable[..., list[Row]]
_LOCK = 4919011
"""The number of the lock that makes transactions of PostgreSQL wait for each other."""
_WAIT_S = 60
_READS = "crowdveil_reads"
_UNSENDABLE = re.compile(r"[\x00\ud800-\udfff]")
"""NUL, and half of a surrogate pair."""

NEWER = (
    "Expected a database of schema revision {known} or older, got {found}. Upgrade crowdveil, or restore the backup "
    "from before the upgrade."
)


def sendable(value: Any) -> Any:
    """Return a JSON value with a replacement character for each one that PostgreSQL or JSON cannot hold."""
    if isinstance(value, str):
        return _UNSENDABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {sendable(name): sendable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [sendable(inner) for inner in value]
    return value


class DatabaseUnavailableError(CrowdveilError):
    """The database does not answer, or cannot write."""

    def __init__(self) -> None:
        super().__init__("The database is unavailable. Try again later, or ask the operator of the server.")


class Database:
    """A database: statements in, rows out."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        weakref.finalize(self, engine.dispose)

    @property
    def is_sqlite(self) -> bool:
        """Return whether the database is a file."""
        return self.engine.dialect.name == "sqlite"

    def do(self, statement: Any) -> list[Row]:
        """Run one statement atomically. A SELECT does not wait for writers."""
        if isinstance(statement, sa.Select):
            with or_unavailable(), self.engine.connect().execution_options(**{_READS: True}) as connection:
                return _run(connection, statement)
        with self.transaction() as do:
            return do(statement)

    @contextmanager
    def transaction(self, *, alone: bool = False) -> Iterator[Do]:
        """Yield a function that runs statements in one transaction. With `alone`, no two such transactions run at once."""
        with or_unavailable(), self.engine.begin() as connection:
            if alone:
                self.lock(connection.execute)
            yield lambda statement: _run(connection, statement)

    def lock(self, do: Callable[..., Any]) -> None:
        """Take the global lock until the transaction ends. SQLite has one writer at a time anyway."""
        if not self.is_sqlite:
            do(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))

    def close(self) -> None:
        """Close all connections that are not in use; the next statement opens another."""
        self.engine.dispose()


@contextmanager
def or_unavailable() -> Iterator[None]:
    """Report a database that does not answer as `DatabaseUnavailableError`."""
    try:
        yield
    except (OperationalError, InterfaceError):
        raise DatabaseUnavailableError from None


def _run(connection: sa.Connection, statement: Any) -> list[Row]:
    result = connection.execute(statement)
    return [dict(row) for row in result.mappings()] if result.returns_rows else []


def open_database(url: str) -> Database:
    """Open the database of a URL: `sqlite:///path` or `postgresql://…`."""
    if url.startswith(("postgresql://", "postgres://")):
        return Database(_postgres(url))
    if url.startswith("sqlite:///"):
        return Database(_sqlite(Path(url.removeprefix("sqlite:///"))))
    raise ParameterError(Option("database_url"), "Expected postgresql://… or sqlite:///path, got another address.")


def _sqlite(path: Path) -> sa.Engine:
    """Open a SQLite file: many readers, and one writer at a time."""
    path.touch(mode=0o600)
    engine = sa.create_engine(
        # A file that was removed is not created again, since its jobs would be lost silently.
        sa.URL.create("sqlite", database=f"{path.absolute().as_uri()}?mode=rw", query={"uri": "true"}),
        connect_args={"timeout": _WAIT_S}, pool_size=8, max_overflow=-1, poolclass=sa.QueuePool,
    )  # fmt: skip

    @event.listens_for(engine, "connect")
    def connected(connection: sqlite3.Connection, _record: Any) -> None:
        connection.isolation_level = None  # `begun` begins transactions
        connection.execute("PRAGMA journal_mode=WAL")
        # An accepted job is on the disk, whatever happens to the machine.
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "checkout")
    def taken(_connection: sqlite3.Connection, record: Any, _proxy: Any) -> None:
        try:
            now = path.stat().st_ino
        except OSError:
            raise sa.exc.DisconnectionError from None
        if record.info.setdefault("file", now) != now:  # the file was replaced
            raise sa.exc.DisconnectionError

    @event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        # A writer takes the lock at once, since SQLite can refuse a reader that turns into a writer.
        reads = connection.get_execution_options().get(_READS)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _postgres(url: str) -> sa.Engine:
    """Connect to a PostgreSQL server."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from None
    try:
        address = sa.make_url(url).set(drivername="postgresql+psycopg")
    except (sa.exc.ArgumentError, ValueError):
        raise ParameterError(
            Option("database_url"), "Expected postgresql://USER@HOST/NAME, got another address."
        ) from None
    # `pool_pre_ping` notices a server that was restarted before a statement fails.
    return sa.create_engine(
        address, connect_args={"connect_timeout": 10}, pool_size=8, max_overflow=-1, pool_pre_ping=True
    )  # fmt: skip


def prepare(database: Database, *, create: bool = True) -> None:
    """Upgrade a database to the newest revision. That creates the tables of an empty one, unless `create` is false."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    with or_unavailable():
        with database.engine.connect() as connection:
            if _revision(connection) == newest:
                return
        with database.engine.begin() as connection:
            database.lock(connection.execute)  # two servers that start at once would both create the tables
            found = _revision(connection)
            if found is None and not create:
                return
            if found is not None and found not in [script.revision for script in scripts.walk_revisions()]:
                raise ParameterError(NEWER.format(found=found, known=newest))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _revision(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
