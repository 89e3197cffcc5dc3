"""Numbers of examples for tests that compare a fast solution with a plain one, or with all possible ones."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest
from hypothesis import settings

slow_param = partial(pytest.param, marks=pytest.mark.slow)
"""A case of a test that `make test` leaves out: cases that remain reach the same code."""
ALL = os.environ.get("CROWDVEIL_ALL_EXAMPLES") == "1"
"""Whether all tests are run (`make test-all`), with all of their examples."""


def tries(number: int) -> int:
    """Return a number of examples: all of them where all tests are run, and a tenth otherwise, from 5 to 100."""
    return number if ALL else min(max(number // 10, 5), 100)


def examples(number: int, **more: Any) -> Any:
    """Set a number of examples as `tries` does."""
    return settings(max_examples=tries(number), **more)
