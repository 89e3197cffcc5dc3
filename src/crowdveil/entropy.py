"""Where random choices come from: the seed that was given, or entropy of the operating system."""

from __future__ import annotations

import hashlib
import secrets

BITS = 128


def fresh() -> int:
    """Return entropy of the operating system, a new value for each call."""
    return secrets.randbits(BITS)


def apart(seed: int, purpose: str) -> int:
    """Return a seed for another purpose: its draws tell nothing about those that are made with `seed` itself."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[: BITS // 8], "big")
