"""What pictures share. Needs matplotlib, which is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from crowdveil.errors import MissingExtraError

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#444444")
_MARKERS = "osD^vP*Xph"


def new_figure(width: float, height: float) -> Any:
    """An empty picture of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing plots") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=130)


def looks() -> Iterator[tuple[str, str]]:
    """Colours and markers, no two alike for the first seventy."""
    for i in range(len(_COLOURS) * len(_MARKERS)):
        yield _COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]
