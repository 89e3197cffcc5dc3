"""Arrays that travel together through the kernels of synthetic data, as NamedTuples."""

from __future__ import annotations

from typing import NamedTuple

from crowdveil.kernels._types import AnyArray, Floats, Indices, Ints


class GravityTables(NamedTuple):
    """A table to draw destinations by attraction and distance.

    Attributes
    ----------
    block
        The block of each tile.
    first, tile, share
        The tiles of block b are tile[first[b]:first[b + 1]]; `share` is their running share of its attraction.
    keep, alias
        Alias tables, one row for each block of origin.
    """

    block: Indices
    first: Ints
    tile: Indices
    share: Floats
    keep: AnyArray
    alias: AnyArray
