"""Create the tables of the service, or bring an older database up to date, with Alembic."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from crowdveil.errors import ParameterError
from crowdveil.server.queue.database import Database, or_away

NEWER = (
    "Expected a database of schema revision {known} or older, got {found}. Upgrade crowdveil, or restore the backup "
    "that was made before the upgrade."
)


def prepare(database: Database, *, create: bool = True) -> None:
    """Upgrade a database to the newest revision. That creates the tables of an empty one, unless `create` is false."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    scripts = ScriptDirectory.from_config(config)
    newest = scripts.get_current_head()
    with or_away():
        with database.engine.connect() as connection:
            if _revision(connection) == newest:
                return
        with database.engine.begin() as connection:
            database.lock(connection.execute)  # two that start at once would both create the tables
            found = _revision(connection)
            if found is None and not create:
                return
            if found is not None and found not in [script.revision for script in scripts.walk_revisions()]:
                raise ParameterError(NEWER.format(found=found, known=newest))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def _revision(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()
