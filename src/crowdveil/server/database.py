"""One way to speak to two data bases: SQLite for one machine, PostgreSQL for several.

SQL is written once, with `?` for values and `{now}` and the like for the few words that differ.
"""

from __future__ import annotations

import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crowdveil.errors import CrowdveilError, MissingExtraError, ParameterError

Row = dict[str, Any]


class AwayError(CrowdveilError):
    """The data base does not answer, or cannot write."""

    def __init__(self) -> None:
        super().__init__("the data base does not answer; ask whoever runs the server, and try again later.")


class _Held:
    """The connection of a thread, which is closed when the thread ends."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection

    def __del__(self) -> None:
        with suppress(Exception):
            self.connection.close()


class Database(ABC):
    """A data base: statements with values in, rows out. Each thread has a connection of its own."""

    words: dict[str, str]
    """What stands for `{now}` (seconds since 1970, by one clock), `{serial}`, `{skip_locked}`, `{one_at_a_time}` and the like."""

    def __init__(self) -> None:
        self._threads = threading.local()

    def do(self, sql: str, *values: Any) -> list[Row]:
        """Run one statement, which takes effect whole or not at all."""
        with self.transaction() as statement:
            rows: list[Row] = statement(sql, *values)
            return rows

    def close(self) -> None:
        """Close this thread's connection; the next statement opens another."""
        self._threads.held = None

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Several statements that take effect together: gives a function as `do`."""
        with self._or_away():
            connection = self._open()
            try:
                self._begin(connection)
                yield lambda sql, *values: self._run(connection, sql.format(**self.words), values)
                connection.commit()
            except BaseException:
                # A connection that failed in the middle of something is not trusted again.
                with suppress(Exception):
                    connection.rollback()
                self.close()
                raise

    @contextmanager
    def _or_away(self) -> Iterator[None]:
        """Tell a data base that does not answer from what is our own fault."""
        try:
            yield
        except self._failures():
            raise AwayError from None

    @abstractmethod
    def _failures(self) -> tuple[type[Exception], ...]: ...

    def _open(self) -> Any:
        held = getattr(self._threads, "held", None)
        if held is None:
            held = self._threads.held = _Held(self._connect())
        return held.connection

    @abstractmethod
    def _connect(self) -> Any: ...

    @abstractmethod
    def _begin(self, connection: Any) -> None: ...

    @abstractmethod
    def _run(self, connection: Any, sql: str, values: Sequence[Any]) -> list[Row]: ...


class Sqlite(Database):
    """A file; many readers and one writer at a time, who waits for the other."""

    words = {  # noqa: RUF012  (never changed)
        "now": "((julianday('now') - 2440587.5) * 86400.0)",
        "serial": "INTEGER PRIMARY KEY",
        "skip_locked": "",
        "one_at_a_time": "SELECT 1",
        "columns_of_log": "SELECT name FROM pragma_table_info('log')",
    }

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=60, isolation_level=None)
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode=WAL")
        # A job that was accepted is on the disk, whatever happens to the machine.
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    def _begin(self, connection: Any) -> None:
        # The lock is taken at once: a reader that turns writer in the middle can be refused.
        connection.execute("BEGIN IMMEDIATE")

    def _run(self, connection: Any, sql: str, values: Sequence[Any]) -> list[Row]:
        return [dict(row) for row in connection.execute(sql, values).fetchall()]

    def _failures(self) -> tuple[type[Exception], ...]:
        return (sqlite3.OperationalError,)

    def do(self, sql: str, *values: Any) -> list[Row]:
        """As for every data base; what only reads does not wait for whoever writes."""
        if not sql.lstrip().startswith("SELECT"):
            return super().do(sql, *values)
        with self._or_away():
            return self._run(self._open(), sql.format(**self.words), values)


class Postgres(Database):
    """A server that several machines share."""

    words = {  # noqa: RUF012  (never changed)
        "now": "extract(epoch FROM clock_timestamp())::double precision",
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        "skip_locked": "FOR UPDATE SKIP LOCKED",
        "one_at_a_time": "SELECT 1 FROM (SELECT pg_advisory_xact_lock(4919011)) AS held",
        "columns_of_log": "SELECT column_name AS name FROM information_schema.columns WHERE table_name = 'log' "
        "AND table_schema = current_schema()",
    }

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def _connect(self) -> Any:
        try:
            import psycopg
            from psycopg.rows import dict_row
        except ImportError:
            raise MissingExtraError("psycopg", "postgres", "PostgreSQL") from None
        return psycopg.connect(self.url, row_factory=dict_row, connect_timeout=10)

    def _begin(self, connection: Any) -> None:
        """A transaction begins by itself with the first statement."""

    def _run(self, connection: Any, sql: str, values: Sequence[Any]) -> list[Row]:
        cursor = connection.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description is not None else []

    def _failures(self) -> tuple[type[Exception], ...]:
        try:
            from psycopg import OperationalError
        except ImportError:
            return ()
        return (OperationalError,)


def open_database(url: str) -> Database:
    """The data base of an address: `sqlite:///path` or `postgresql://…`."""
    if url.startswith(("postgresql://", "postgres://")):
        return Postgres(url)
    if url.startswith("sqlite:///"):
        return Sqlite(Path(url.removeprefix("sqlite:///")))
    raise ParameterError("database-url: wanted postgresql://… or sqlite:///path, but it begins otherwise.")
