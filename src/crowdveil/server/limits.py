"""Limits on clients and on the disk: what `crowdveil serve` takes as options beyond the limits of tokens."""

from __future__ import annotations

from pydantic import Field

from crowdveil.params import Params


class ClientLimits(Params):
    """How long and how often a client may hold a connection."""

    header_seconds: float = Field(10.0, gt=0)
    """Time for a client to send the headers of a request, in seconds."""
    upload_seconds: float = Field(3600.0, gt=0)
    """Time for a client to send the body of a request, in seconds."""
    min_upload_rate: int = Field(1024, ge=0)
    """Least bytes per second of an upload, over each window of 15 seconds; 0 for no least rate."""
    stall_seconds: float = Field(60.0, gt=0)
    """Time that a client may leave an answer unread, in seconds."""
    max_connections: int = Field(1000, ge=1)
    """Open connections in all."""
    max_connections_per_address: int = Field(100, ge=1)
    """Open connections of one address (of one /64 network with IPv6); those on a Unix socket are not counted."""
