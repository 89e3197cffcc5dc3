"""Helpers that several functions of the Python API share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from crowdveil.engine.progress import progress_bar
from crowdveil.errors import CrowdveilError, CrowdveilWarning, as_argument
from crowdveil.io.manifest import Manifest
from crowdveil.io.notes import ReadNotes
from crowdveil.io.tables import check_ending, check_picture
from crowdveil.methods.base import RowSemantics
from crowdveil.params import Params
from crowdveil.registry import find_method
from crowdveil.run.result import Result


def split_options(options: dict[str, Any], model: type[Params]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split options into those of a model and the rest."""
    own = {name: value for name, value in options.items() if name in model.model_fields}
    return own, {name: value for name, value in options.items() if name not in own}


def check_outputs(output: str | Path | None, plot: str | Path | None) -> None:
    """Raise unless the suffixes of files name a format to write or draw."""
    if output is not None:
        check_ending(Path(output), ".json")
    if plot is not None:
        check_picture(plot)


def row_semantics_of(manifest: Manifest) -> RowSemantics:
    """Return the row semantics of a release's method, or exact if the method is not installed."""
    try:
        return find_method(manifest.method.name).row_semantics
    except CrowdveilError:
        return "exact"


P = ParamSpec("P")
R = TypeVar("R")


def visible(function: Callable[P, R]) -> Callable[P, R]:
    """Show a progress bar and a warning for each note, unless the caller passes its own progress and notes.

    A result of `anonymize` may replace the folder of a release in any argument.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        notes, options = ReadNotes(), cast(dict[str, Any], kwargs)
        own = options.setdefault("notes", notes) is notes
        with ExitStack() as shown:
            if "progress" not in options and "stage" not in options:
                options["progress"], options["stage"] = shown.enter_context(progress_bar())
            values = [shown.enter_context(folder_of(value)) for value in args]
            named = {name: shown.enter_context(folder_of(value)) for name, value in options.items()}
            result = function(*values, **named)
        if own:
            warn(notes)
        return result

    return call


def warn(notes: ReadNotes, stacklevel: int = 2) -> None:
    """Show notes as Python warnings."""
    for sentence in notes.sentences(as_argument):
        warnings.warn(sentence, CrowdveilWarning, stacklevel=stacklevel + 1)


@contextmanager
def folder_of(release: Any) -> Iterator[Any]:
    """Yield the folder of a result, also of one in memory or in a list, and any other value unchanged."""
    if isinstance(release, list) and any(isinstance(each, Result) for each in release):
        with ExitStack() as opened:
            yield [opened.enter_context(folder_of(each)) for each in release]
    elif not isinstance(release, Result):
        yield release
    elif isinstance(release.folder, str):  # on a cluster
        yield release.folder
    else:
        with release.opened() as folder:
            yield Path(folder)
