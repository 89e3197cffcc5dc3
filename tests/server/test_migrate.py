"""The migration makes the tables that the program uses, and a newer database is refused; on both databases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from crowdveil.errors import ParameterError
from crowdveil.server.queue.database import Database, open_database
from crowdveil.server.queue.schema import metadata
from crowdveil.server.queue.store import Store


def tables(database: Database) -> dict[str, Any]:
    """What tables look like: columns with types, and indexes."""
    with database.engine.connect() as connection:
        seen = sa.inspect(connection)
        return {
            table: (
                seen.get_pk_constraint(table)["constrained_columns"],
                {c["name"]: (str(c["type"]), c["nullable"], str(c["default"])) for c in seen.get_columns(table)},
                {i["name"]: i["column_names"] for i in seen.get_indexes(table)},
                sorted(tuple(u["column_names"]) for u in seen.get_unique_constraints(table)),
            )
            for table in seen.get_table_names()
            if table != "alembic_version"
        }


def test_the_migration_makes_the_tables_of_the_program(database_url: str) -> None:
    database = Store(open_database(database_url)).db
    migrated = tables(database)
    metadata.drop_all(database.engine)
    metadata.create_all(database.engine)
    assert set(migrated) == {"jobs", "tokens", "log"} and tables(database) == migrated


def test_servers_that_start_at_once_make_the_tables_once(database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: Store(open_database(database_url)), range(4)))
    assert all(store.counts() == {} for store in stores)


def test_a_newer_database_is_refused(database_url: str) -> None:
    store = Store(open_database(database_url))
    store.db.do("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(ParameterError, match="revision 0001 or older, got 9999"):
        Store(open_database(database_url))


def test_a_command_that_only_reads_makes_nothing(database_url: str) -> None:
    database = open_database(database_url)
    Store(database, create=False)
    assert tables(database) == {}
