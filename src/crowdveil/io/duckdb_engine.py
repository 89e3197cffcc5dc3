"""DuckDB, the SQL engine that groups trips out of core, with bounded memory and no access to other files."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crowdveil.engine.threads import thread_count
from crowdveil.errors import CrowdveilError, InputError, OutputError
from crowdveil.io.atomic import scratch_folder

MEMORY_LIMIT = "1GB"
"""Memory of the engine; beyond it, data is spilled to a temporary folder."""
FEW_ROWS = 1_000_000
"""Rows that are grouped in much less than that memory."""
_kept: dict[tuple[int, int], Any] = {}
"""Engines for few rows, by process and threads."""
_guard = threading.Lock()


@contextmanager
def engine(
    *,
    memory_limit: str = MEMORY_LIMIT,
    threads: int | None = None,
    reading: Sequence[Path] = (),
    working: Path | None = None,
) -> Iterator[Any]:
    """Yield a connection with bounded memory and its own temporary folder; `threads` are those of this process if not given.

    It opens no files but those in `reading`, writes none but in the folder `working`, and loads no extension; no query can
    change that.
    """
    with scratch_folder() as spill:
        connection = _open(memory_limit, spill, threads or thread_count())
        try:
            if reading:
                spellings = (spelling for path in reading for spelling in (path.absolute(), path.resolve()))
                paths = dict.fromkeys(quote_literal(str(path)) for path in spellings)
                connection.execute(f"SET allowed_paths = [{', '.join(paths)}]")
            if working is not None:
                connection.execute(f"SET allowed_directories = [{quote_literal(str(working.absolute()))}]")
            _confine(connection)
            yield connection
        finally:
            connection.close()


@contextmanager
def engine_for_rows(rows: int | None, threads: int | None = None) -> Iterator[Any]:
    """Yield a connection as `engine` does, for a number of rows in memory; None where it is unknown.

    To open an engine takes longer than to group a few thousand rows, so that one for few rows stays open until the process
    ends. It opens no file, and writes none: few rows are never spilled. Registered and temporary tables of one
    connection are not seen by others; permanent ones would be, so that none may be made.
    """
    if rows is None or rows > FEW_ROWS:
        with engine(threads=threads) as connection:
            yield connection
        return
    # A process that was forked has no threads of an engine of its parent, which it must not use or close.
    key = os.getpid(), threads or thread_count()
    with _guard:
        if key not in _kept:
            _kept[key] = _open(MEMORY_LIMIT, "", key[1])
            _confine(_kept[key])
        connection = _kept[key].cursor()
    try:
        yield connection
    finally:
        connection.close()


@atexit.register
def _close_kept() -> None:
    for process, threads in list(_kept):
        if process == os.getpid():
            _kept.pop((process, threads)).close()


def _open(memory_limit: str, spill: str, threads: int) -> Any:
    """Open an engine that loads no extension and spills to a folder, if one is named."""
    import duckdb

    config = {
        "memory_limit": memory_limit,
        "temp_directory": spill,
        "threads": str(threads),
        # The order of rows does not matter, and keeping it costs memory.
        "preserve_insertion_order": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
    }
    return duckdb.connect(":memory:", config=config)


def _confine(connection: Any) -> None:
    """Let no later query open other files, or change that."""
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def fetch(connection: Any, sql: str) -> Any:
    """Return the result of a query as an Arrow table; an interrupt ends it."""
    return _interruptible(connection, lambda: connection.sql(sql).to_arrow_table())


def execute(connection: Any, sql: str) -> None:
    """Run a statement that has no result; an interrupt ends it."""
    _interruptible(connection, lambda: connection.execute(sql))


def _interruptible(connection: Any, work: Callable[[], Any]) -> Any:
    """Run a query on its own thread, because DuckDB may lose an interrupt that arrives while a query starts.

    An interrupt is therefore repeated until the query has stopped.
    """
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(work)
        try:
            return result.result()
        except KeyboardInterrupt:
            while not result.done():
                connection.interrupt()
                wait([result], timeout=0.05)
            raise


def quote_identifier(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(text: str) -> str:
    """Quote a text for SQL."""
    return "'" + text.replace("'", "''") + "'"


def is_pattern(path: Path) -> bool:
    """Return whether DuckDB reads a path as a pattern of paths."""
    return any(sign in str(path) for sign in "*?[")


@contextmanager
def duckdb_errors(name: str, failed: Sequence[BaseException] = ()) -> Iterator[None]:
    """Turn errors of DuckDB into one sentence; raise the first of `failed`, errors of ours that passed through it, instead."""
    import duckdb

    try:
        yield
    except (duckdb.Error, RuntimeError) as error:
        if failed:
            raise failed[0] from None
        if "interrupt" in str(error).lower():
            raise KeyboardInterrupt from None
        raise _describe_error(name, error) from None


def _describe_error(name: str, error: Exception) -> CrowdveilError:
    import duckdb

    if isinstance(error, duckdb.OutOfMemoryException):
        return InputError(name, "grouping needs more memory or temporary disk space; free some, or give less data.")
    if "No space" in str(error):
        return OutputError(
            name, "the disk for temporary files is full; free some space, or set TMPDIR to another disk."
        )
    return InputError(name, "the file is broken, or changed while it was read; write it again.")
