"""The SQL engine that groups trips out of core: DuckDB, kept small and closed after use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crowdveil.io.atomic import scratch_folder
from crowdveil.threads import thread_count

MEMORY_LIMIT = "1GB"
"""What the engine may hold in memory; beyond it, it uses a temporary folder."""
_NO_EXTENSIONS = {
    "autoinstall_known_extensions": "false", "autoload_known_extensions": "false", "allow_community_extensions": "false",
}  # fmt: skip


@contextmanager
def engine(
    *, memory_limit: str = MEMORY_LIMIT, threads: int | None = None, reading: Path | None = None
) -> Iterator[Any]:
    """Connect with a bounded memory, a temporary folder that is removed afterwards, and `threads` or the usual number.

    It opens no file but the one that it is to read, loads no extension, and nothing in a query can change that.
    """
    import duckdb

    with scratch_folder() as spill:
        config = {"memory_limit": memory_limit, "temp_directory": spill, **_NO_EXTENSIONS}
        connection = duckdb.connect(":memory:", config=config)
        try:
            # Nobody reads rows in the order of the file, and keeping it costs memory.
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"SET threads = {threads or thread_count()}")
            if reading is not None:
                paths = dict.fromkeys(literal(str(path)) for path in (reading.absolute(), reading.resolve()))
                connection.execute(f"SET allowed_paths = [{', '.join(paths)}]")
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
            yield connection
        finally:
            connection.close()


def fetch(connection: Any, sql: str) -> Any:
    """The result of a query as a table.

    It runs on a thread of its own, because the engine may lose an interrupt that reaches it while it begins: here the
    interrupt reaches us, and the engine is told until it has stopped.
    """
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(lambda: connection.sql(sql).to_arrow_table())
        try:
            return result.result()
        except KeyboardInterrupt:
            while not result.done():
                connection.interrupt()
                wait([result], timeout=0.05)
            raise


def quoted(name: str) -> str:
    """A column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text for SQL."""
    return "'" + text.replace("'", "''") + "'"
