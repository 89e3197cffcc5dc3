"""Figures of matplotlib, which is imported for the first figure."""

from __future__ import annotations

from typing import Any

from crowdveil.errors import import_extra


def new_figure(width: float, height: float, *, arranged: bool = True) -> Any:
    """Return a new figure of matplotlib; width and height are in inches.

    An `arranged` figure finds places for its axes, for which matplotlib draws it twice; others are drawn once.
    """
    figures = import_extra("matplotlib.figure", "matplotlib", "report", "drawing plots")
    return figures.Figure(figsize=(width, height), layout="constrained" if arranged else None, dpi=130)
