"""Tokens have sources of data, each with a ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add a column, which is empty for tokens of before."""
    op.add_column("tokens", sa.Column("sources", sa.Text, nullable=False, server_default=sa.text("''")))
