"""Distance over a graph of trajectories that are on their way at the same time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crowdveil.errors import InputError
from crowdveil.kernels.trajectory.contemporaries import apart_from, count_neighbors, edges
from crowdveil.model.arrays import Floats, Ints
from crowdveil.solve.trajectory.distances.base import Paths

MAX_EDGES = 60_000_000
"""More pairs of contemporaries than this take more memory than most machines have: 24 bytes for each, and more to begin with."""


@dataclass(frozen=True, eq=False)
class Contemporaries:
    """The shortest way over trajectories that are on their way at the same time; infinite where there is none.

    Two trajectories that share a span of time are as far apart as their places in it, on straight lines between their points:
    the root mean square over all their times in it, divided by the share of the longer one's time that it is.
    """

    paths: Paths

    @cached_property
    def graph(self) -> Any:
        """Return the edges as a sparse matrix, each in both directions: scipy would reverse them for every path that is asked
        for.
        """
        from scipy.sparse import coo_array

        paths = self.paths
        start, end = paths.t[paths.offsets[:-1]], paths.t[paths.offsets[1:] - 1]
        order = np.argsort(start, kind="stable")
        pairs = int(count_neighbors(order, start, end))
        if pairs > MAX_EDGES:
            raise InputError(
                f"{pairs:,} pairs of trajectories overlap in time, and the graph of them may have at most {MAX_EDGES:,}. "
                "Give fewer trajectories, or choose another distance where the method has several."
            )
        first, second, length = edges(order, start, end, *paths.points, pairs)
        # Indices of 32 bits: shortest paths in the oldest scipy that is supported take no others.
        ends = np.concatenate([first, second]).astype(np.int32), np.concatenate([second, first]).astype(np.int32)
        return coo_array((np.concatenate([length, length]), ends), shape=(len(paths), len(paths))).tocsr()

    def components(self) -> list[Ints]:
        """Return the components of the graph, each rising: only within a component there is a path."""
        from scipy.sparse.csgraph import connected_components

        if len(self.paths) == 0:
            return []
        part = connected_components(self.graph, directed=False)[1]
        order = np.argsort(part, kind="stable").astype(np.int64)
        return np.split(order, np.cumsum(np.bincount(part))[:-1])

    def between(self, path: tuple[Floats, Floats, Floats], to: Ints) -> Floats:
        """Return distances from any path to trajectories of the data: over those that are its contemporaries."""
        from scipy.sparse import csr_array, vstack
        from scipy.sparse.csgraph import dijkstra

        n = len(self.paths)
        x, y, t, offsets = self.paths.points
        first = apart_from(*path, x, y, t, offsets)
        reached = np.flatnonzero(np.isfinite(first))
        if len(reached) == 0:
            return np.full(len(to), np.inf)
        row = csr_array((first[reached], reached.astype(np.int32), np.array([0, len(reached)], np.int32)), shape=(1, n))
        graph = vstack([self.graph, row], format="csr")
        graph.resize((n + 1, n + 1))
        # No way from it comes back to it, so its edges are needed in one direction only.
        found: Floats = dijkstra(graph, indices=n)[to]
        return found

    def from_one(self, i: int, to: Ints) -> Floats:
        """Return distances from a trajectory of the data to others."""
        from scipy.sparse.csgraph import dijkstra

        found: Floats = dijkstra(self.graph, indices=i)[to]
        return found
