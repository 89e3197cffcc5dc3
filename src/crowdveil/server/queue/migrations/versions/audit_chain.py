"""Lines of the audit log become a chain of hashes, and the database records its data directory."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add columns to the log, which are empty in lines of before, and a table of one row."""
    op.add_column("log", sa.Column("previous", sa.Text))
    op.add_column("log", sa.Column("hash", sa.Text))
    op.create_table("about", sa.Column("name", sa.Text, primary_key=True), sa.Column("value", sa.Text, nullable=False))
