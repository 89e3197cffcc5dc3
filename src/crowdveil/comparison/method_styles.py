"""Colors and markers of methods in plots."""

from __future__ import annotations

from collections.abc import Iterator

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
_MARKERS = "osD^vP*Xph"


def method_styles() -> Iterator[tuple[str, str]]:
    """Yield pairs of color and marker; the first seventy are distinct."""
    for i in range(len(_COLORS) * len(_MARKERS)):
        yield _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)]
