"""Figures of matplotlib, which is imported for the first figure."""

from __future__ import annotations

from typing import Any


def new_figure(width: float, height: float) -> Any:
    """Return a new figure of matplotlib, which finds places for its axes; width and height are in inches."""
    from matplotlib.figure import Figure  # here, since few commands draw

    return Figure(figsize=(width, height), layout="constrained", dpi=130)
