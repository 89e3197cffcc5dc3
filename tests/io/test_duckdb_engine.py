"""The SQL engine: what a query may not do."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from crowdveil.io.duckdb_engine import engine


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "secret.csv"
    path.write_text("a\n1\n")
    return f"'{path}'"


def test_a_query_opens_no_file_and_frees_itself_of_no_limit(secret: str, tmp_path: Path) -> None:
    target = f"'{tmp_path / 'out.csv'}'"
    for sql in (
        f"SELECT * FROM read_csv({secret})",
        f"COPY (SELECT 1) TO {target}",
        f"ATTACH {target} AS other",
        "SET enable_external_access = true",
        "SET memory_limit = '100GB'",
        f"SET allowed_paths = [{secret}]",
        "INSTALL httpfs",
    ):
        with engine() as connection, pytest.raises(duckdb.Error):
            connection.execute(sql)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
