"""Models of a report page: its figures and tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from crowdveil.io.manifest import Manifest

STRONGER = '<span class="stronger"></span>'
"""The word darker, or lighter in dark mode; the style sheet writes it, since it alone knows the mode."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A static figure with a description (text, or markup that is safe) and the colors of its classes."""

    title: str
    svg: str
    text: str
    legend: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Table:
    """A table with its heading, and a note below it; columns of numbers are right-aligned."""

    title: str
    head: list[str]
    rows: list[list[str]]
    numbers: list[bool]
    note: str = ""


@dataclass(frozen=True, eq=False)
class PageModel:
    """Content of a report page.

    Attributes
    ----------
    data
        Data that the script draws, of kind flows or trajectories; without layers there is no map.
    figures, tables, key_figures
        Static figures, tables, and the first few numbers with their names.
    omissions
        Notes on what the page does not show.
    """

    data: dict[str, Any]
    figures: list[Figure]
    tables: list[Table]
    key_figures: list[tuple[str, str]]
    omissions: list[str]


def method_parameters(manifest: Manifest) -> dict[str, Any]:
    """Return the parameters of a release's method as a user types them: the share to suppress is in percent."""
    parameters = dict(manifest.method.parameters)
    if isinstance(share := parameters.get("suppress"), float):
        parameters["suppress"] = f"{100 * share:.12g}%"
    return parameters
