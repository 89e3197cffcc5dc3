"""The SQL engine: what a query may not do, and the engine for few rows that stays open."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from crowdveil.io import duckdb_engine
from crowdveil.io.duckdb_engine import FEW_ROWS, engine, engine_for_rows, fetch, quote_literal

WAYS: list[Callable[[], AbstractContextManager[Any]]] = [
    engine, lambda: engine_for_rows(1), lambda: engine_for_rows(FEW_ROWS + 1), lambda: engine_for_rows(None),
]  # fmt: skip


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    return quote_literal(str(path))


@pytest.mark.parametrize("way", WAYS, ids=["engine", "few", "many", "unknown"])
def test_a_query_opens_no_file_and_frees_itself_of_no_limit(
    way: Callable[[], AbstractContextManager[Any]], secret: str, tmp_path: Path
) -> None:
    target = quote_literal(str(tmp_path / "out.csv"))
    for sql in (
        f"SELECT * FROM read_csv({secret})",
        f"COPY (SELECT 1) TO {target}",
        f"ATTACH {target} AS other",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        f"SET allowed_paths = [{secret}]",
        "INSTALL httpfs",
    ):
        with way() as connection, pytest.raises(duckdb.Error):
            connection.execute(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_few_rows_share_an_engine_and_no_table() -> None:
    rows = pa.table({"a": [1, 2, 2]})
    with engine_for_rows(3, threads=1) as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TEMP TABLE mine AS SELECT 1")
        assert fetch(connection, "SELECT a, count(*) AS n FROM rows GROUP BY a ORDER BY a")["n"].to_pylist() == [1, 2]
        with engine_for_rows(3, threads=1) as other:
            for table in ("rows", "mine"):
                with pytest.raises(duckdb.CatalogException):
                    other.execute(f"SELECT * FROM {table}")
    before = dict(duckdb_engine._kept)
    with engine_for_rows(3, threads=1), engine_for_rows(FEW_ROWS + 1, threads=1), engine_for_rows(None, threads=1):
        assert duckdb_engine._kept == before, "one is kept; engines for more rows are closed"


def test_several_threads_group_at_once() -> None:
    def total(number: int) -> int:
        with engine_for_rows(1000, threads=1) as connection:
            connection.register("rows", pa.table({"a": [number] * 1000}))
            found: int = fetch(connection, "SELECT sum(a)::BIGINT AS n FROM rows")["n"][0].as_py()
            return found

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(total, range(40))) == [1000 * number for number in range(40)]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_opens_its_own() -> None:
    with engine_for_rows(1) as connection:
        connection.execute("SELECT 1")
    child = os.fork()
    if child == 0:
        try:
            with engine_for_rows(1) as connection:
                found = connection.execute("SELECT sum(range) FROM range(100000)").fetchone()
            own = [process for process, _ in duckdb_engine._kept if process == os.getpid()]
            os._exit(0 if found == (4999950000,) and own else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
