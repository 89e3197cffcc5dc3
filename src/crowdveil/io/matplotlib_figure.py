"""Figures of matplotlib, which is imported for the first figure."""

from __future__ import annotations

from typing import Any

from crowdveil.errors import import_extra


def new_figure(width: float, height: float) -> Any:
    """Return a new figure of matplotlib; width and height are in inches."""
    figures = import_extra("matplotlib.figure", "matplotlib", "report", "drawing plots")
    return figures.Figure(figsize=(width, height), layout="constrained", dpi=130)
