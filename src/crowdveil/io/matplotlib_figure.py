"""Figures of matplotlib, which is imported for the first figure."""

from __future__ import annotations

from typing import Any

from crowdveil.errors import MissingExtraError


def new_figure(width: float, height: float) -> Any:
    """Return a new figure of matplotlib; width and height are in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "report", "drawing plots") from None
    return Figure(figsize=(width, height), layout="constrained", dpi=130)
