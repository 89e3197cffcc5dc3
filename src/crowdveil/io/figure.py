"""A new figure to draw on. Needs matplotlib, which is imported when the first one is made."""

from __future__ import annotations

from typing import Any

from crowdveil.errors import MissingExtraError


def new_figure(width: float, height: float) -> Any:
    """A figure of matplotlib, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing plots") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=130)
