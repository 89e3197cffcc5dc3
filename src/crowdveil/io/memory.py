"""Give memory that was freed back to the system: Arrow's allocator keeps it, and numpy cannot use it."""

from __future__ import annotations

import pyarrow as pa


def return_unused() -> None:
    """Give back what Arrow has freed. A table that was read, and is not needed any more, else counts until the process ends."""
    pa.default_memory_pool().release_unused()
