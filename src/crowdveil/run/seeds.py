"""Provide seeds of random choices: derived from the given seed, or from entropy of the operating system."""

from __future__ import annotations

import hashlib
import secrets

BITS = 128


def fresh() -> int:
    """Return entropy of the operating system, a new value for each call."""
    return secrets.randbits(BITS)


def derive_seed(seed: int, purpose: str) -> int:
    """Return a seed for another purpose: its draws reveal nothing about draws made with `seed` itself."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[: BITS // 8], "big")


ATTACKS = "attacks"
"""The purpose of the attacks' seed: their draws are not those of the method."""


def drawn_seed(seed: int | None) -> int:
    """Return the seed of a run: the given one, or fresh entropy."""
    return fresh() if seed is None else seed
