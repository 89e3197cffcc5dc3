"""How many examples a test looks at that holds a fast way against a plain one, or against all ways there are."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

ALL = os.environ.get("CROWDVEIL_ALL_EXAMPLES") == "1"


def tries(number: int) -> int:
    """Return a number of examples: all of them where all tests are run (`make test-all`), and a third otherwise."""
    return number if ALL else max(number // 3, 5)


def examples(number: int, **more: Any) -> Any:
    """So many where all tests are run (`make test-all`), and two fifths of them otherwise: there are hundreds of such tests."""
    return settings(max_examples=number if ALL else max(2 * number // 5, 20), **more)
