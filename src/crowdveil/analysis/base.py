"""The record of an analysis, and its results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from crowdveil.analysis.study import Study
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.io.tables import open_table_writer
from crowdveil.model.arrays import Labels
from crowdveil.model.tabular import Tabular
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


class TableResult(Tabular):
    """A result whose table is written with its description."""

    def table(self) -> pa.Table:
        """Return all rows."""
        raise NotImplementedError

    def about(self) -> dict[str, Any]:
        """Return the description of the rows, for the file."""
        raise NotImplementedError

    @property
    def labels(self) -> Labels:
        """Every value of the text columns."""
        raise NotImplementedError

    def chunks(self, progress: Progress) -> Iterator[pa.Table]:
        """Yield the rows, some at a time."""
        yield self.table()

    def to_arrow(self) -> pa.Table:
        """Return all rows."""
        return self.table()

    def write(self, path: Path, progress: Progress = no_progress) -> None:
        """Write the rows in the format of the suffix; JSON and Parquet hold the description, too."""
        chunks = self.chunks(progress)
        first = next(chunks)
        with open_table_writer(path, first.schema, self.about(), self.labels) as write:
            write(first)
            for chunk in chunks:
                write(chunk)


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
        (path, overwrite=…) raises unless its files can be written there; None if it writes a table.
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
    check_output: Callable[..., None] | None = None
    extra: str = ""
    examples: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().splitlines()[0]
