"""Boxes and solutions that are kept between runs on the same flows.

Runs with the same boxes build them once; those that differ in their budget alone are also solved together, by the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from crowdveil.model.flows import Flows

T = TypeVar("T")
MAX_BYTES = 2**30
"""Memory of all boxes that are kept; boxes beyond it are built again."""


class KeptBoxes:
    """Boxes of some flows by what they were made with.

    Attributes
    ----------
    runs
        Parameters of the runs to come.
    alike
        Those of them that have the same in common, by what it is.
    solutions
        What the first of some runs solved for all of them, by what they have in common.
    """

    def __init__(self, data: Flows, runs: Sequence[Any]) -> None:
        self.data, self.runs = data, runs
        self.alike: dict[Hashable, list[Any]] = {}
        self.solutions: dict[Hashable, dict[Any, Any]] = {}
        self._kept: dict[Hashable, Any] = {}
        self._bytes = 0

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what was made with the same key, or make it; threads may do so at the same time."""
        found: T | None = self._kept.get(key)
        if found is None:
            found = make()
            size = _size(found)
            if self._bytes + size <= MAX_BYTES:
                self._kept[key] = found
                self._bytes += size
        return found


_current: ContextVar[KeptBoxes | None] = ContextVar("kept_boxes", default=None)


@contextmanager
def keep_boxes(data: Flows, runs: Sequence[Any] = ()) -> Iterator[KeptBoxes]:
    """Keep the boxes of these flows, and what was solved for several of the runs at once, until the end of the block."""
    kept = KeptBoxes(data, runs)
    token = _current.set(kept)
    try:
        yield kept
    finally:
        _current.reset(token)


def kept_boxes(data: Flows) -> KeptBoxes | None:
    """Return the boxes that are kept for these flows; None where none are."""
    current = _current.get()
    return current if current is not None and current.data is data else None


def _size(made: Any) -> int:
    """Return the bytes of the arrays of boxes."""
    columns = [value for value in vars(made).values() if isinstance(value, np.ndarray | tuple)]
    arrays = [array for column in columns for array in (column if isinstance(column, tuple) else (column,))]
    return sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
