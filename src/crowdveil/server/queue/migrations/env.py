"""Alembic's entry: the connection is handed over by `crowdveil.server.queue.database`, and its transaction is the caller's."""

from __future__ import annotations

from alembic import context

from crowdveil.server.queue.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
