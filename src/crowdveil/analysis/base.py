"""The record of an analysis, and the protocol of its results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from crowdveil.analysis.study import Study
from crowdveil.engine.progress import Progress
from crowdveil.params import Params

CONFIDENTIAL = "The original was read: these numbers are exact and confidential."


class AnalysisResult(Protocol):
    """Result of an analysis."""

    def lines(self) -> list[str]:
        """Return a summary as lines of text."""
        ...

    def write(self, path: Path, progress: Progress) -> None:
        """Write the full result in the format of the name's suffix."""
        ...


class CheckOutput(Protocol):
    """Check of an output path before data is read."""

    def __call__(self, path: Path, *, overwrite: bool) -> None:
        """Raise unless files can be written there."""
        ...


@dataclass(frozen=True)
class Analysis:
    """The record of an analysis, from which command line, service and docs are generated.

    Attributes
    ----------
    name
        Name of its command.
    params
        Its parameters.
    takes
        Its input: a `Study` of a release of flows, or original `Trajectories`.
    run
        (data, params, progress) → result. Reads no file, changes no input; randomness comes from a seed parameter.
    doc
        The docstring of its module.
    compares
        Whether it can compare the release with the original.
    check_output
        Raises unless its files can be written; None if it writes a table.
    extra
        The extra that it needs, "" for none.
    help
        A sentence or two for the command line.
    examples
        Arguments of its command in examples.
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
