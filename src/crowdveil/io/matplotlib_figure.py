"""Figures of matplotlib, which is imported for the first figure."""

from __future__ import annotations

from typing import Any


def new_figure(width: float, height: float, *, arranged: bool = True) -> Any:
    """Return a new figure of matplotlib; width and height are in inches.

    An `arranged` figure finds places for its axes, for which matplotlib draws it twice; others are drawn once.
    """
    from matplotlib.figure import Figure  # here, since few commands draw

    return Figure(figsize=(width, height), layout="constrained" if arranged else None, dpi=130)
