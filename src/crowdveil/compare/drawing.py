"""How methods look in pictures."""

from __future__ import annotations

from collections.abc import Iterator

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
_MARKERS = "osD^vP*Xph"


def looks() -> Iterator[tuple[str, str]]:
    """Colours and markers, no two alike for the first seventy."""
    for i in range(len(_COLOURS) * len(_MARKERS)):
        yield _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
