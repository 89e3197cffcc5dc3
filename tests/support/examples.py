"""Numbers of examples for tests that compare a fast solution with a plain one, or with all possible ones."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = os.environ.get("CROWDVEIL_ALL_EXAMPLES") == "1"
"""Whether all tests are run (`make test-all`), with all of their examples."""


def tries(number: int) -> int:
    """Return a number of examples: all of them where all tests are run, and a sixth otherwise."""
    return number if ALL else max(number // 6, 5)


def examples(number: int, **more: Any) -> Any:
    """Set a number of examples: all of them where all tests are run, and a fifth otherwise, as hundreds of tests use it."""
    return settings(max_examples=number if ALL else max(number // 5, 10), **more)
