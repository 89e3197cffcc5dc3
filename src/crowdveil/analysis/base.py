"""What an analysis is: its record, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crowdveil.analysis.study import Study
from crowdveil.params import Params
from crowdveil.progress import Progress

IN_THE_HOUSE = "The original was read: these numbers are exact and stay in the house."


class AnalysisResult(Protocol):
    """What comes of an analysis."""

    def lines(self) -> list[str]:
        """The few things that a person wants to know first."""
        ...

    def write(self, path: Path, progress: Progress) -> None:
        """Write all of it as the ending of the name says."""
        ...


class CheckOutput(Protocol):
    """Looks at a place before anything is read."""

    def __call__(self, path: Path, *, overwrite: bool) -> None:
        """Raise unless files can be put there."""
        ...


@dataclass(frozen=True)
class Analysis:
    """The record of an analysis: what the command line, the docs and every other door are drawn from.

    Attributes
    ----------
    name
        What its command is called.
    params
        Its parameters.
    takes
        What it works on: a `Study` of a release of flows, or original `Trajectories`.
    run
        (data, params, progress) → what was found. Reads no file, changes no input; chance comes from a seed
        among the parameters.
    doc
        The docstring of its module.
    compares
        Whether the original can stand beside the release.
    check_output
        Raises unless its files can be put at a place; None where it writes a table.
    extra
        The optional dependencies that it needs, "" for none.
    help
        A sentence or two for the command line.
    examples
        What stands behind its command in examples.
    """

    name: str
    params: type[Params]
    run: Callable[[Any, Any, Progress], AnalysisResult]
    doc: str
    help: str
    takes: type = Study
    compares: bool = True
    check_output: CheckOutput | None = None
    extra: str = ""
    examples: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().splitlines()[0]
