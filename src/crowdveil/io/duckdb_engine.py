"""DuckDB, the SQL engine that groups trips out of core, with bounded memory and no access to other files."""

from __future__ import annotations

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


@contextmanager
def engine(*, database: Path | None = None) -> Iterator[Any]:
    """Yield a connection with bounded memory and its own temporary folder.

    Tables are in memory, or in the file `database`. It opens no other file and loads no extension; no query can change that.
    """
    import duckdb

    with scratch_folder() as spill:
        config = {
            "memory_limit": MEMORY_LIMIT,
            "temp_directory": spill,
            "threads": str(thread_count()),
            # The order of rows does not matter, and keeping it costs memory.
            "preserve_insertion_order": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
        }
        connection = duckdb.connect(database or ":memory:", config=config)
        try:
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection
        finally:
            connection.close()


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


@contextmanager
def duckdb_errors(name: str, failed: Sequence[BaseException] = ()) -> Iterator[None]:
    """Turn an error of DuckDB into one sentence. If `failed` has errors of ours that passed through it, raise the first."""
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
        return InputError(name, "grouping needs more memory or temporary disk space. Free some, or give less data.")
    if "No space" in str(error):
        return OutputError(
            name, "the disk for temporary files is full. Free some space, or set TMPDIR to another disk."
        )
    return InputError(name, "the file is broken, or changed while it was read. Write it again.")
