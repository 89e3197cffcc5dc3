"""Errors that cross from executors to the driver, where only their text arrives, and come out as the one sentence they were."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from crowdveil import errors
from crowdveil.errors import CrowdveilError, InputError, MissingExtraError, ParameterError

T = TypeVar("T")
_MARK = "crowdveil-says:"


def told(function: Callable[[Any], T], argument: Any) -> T:
    """In a worker: an error of ours reaches the driver as text only, so it is marked to be found there."""
    try:
        return function(argument)
    except CrowdveilError as error:
        raise RuntimeError(_MARK + json.dumps([type(error).__name__, str(error)])) from None


def telling(function: Callable[[Any], Iterator[T]], pieces: Any) -> Iterator[T]:
    """The same for what comes piece by piece."""
    made = function(pieces)
    while (piece := told(lambda it: next(it, None), made)) is not None:
        yield piece


def in_one_sentence(error: Exception) -> Exception:
    """An error of ours as it was raised on an executor; one of Spark that a user can mend; or the error itself."""
    text = str(error)
    found = re.search(re.escape(_MARK) + r"(\[.*\])", text)
    if found:
        name, message = json.loads(found[1])
        kind = getattr(errors, name, InputError)
        made: Exception = InputError(message) if kind is MissingExtraError else kind(message)
        return made
    return next((kind(sentence) for part, kind, sentence in _KNOWN if part in text), error)


_KNOWN: tuple[tuple[str, type[CrowdveilError], str], ...] = (
    (
        "No module named 'crowdveil'",
        ParameterError,
        "--engine spark: the workers' Python has no crowdveil; pack it for them, as docs/spark.md says.",
    ),
    (
        "MALFORMED_RECORD_IN_PARSING",
        InputError,
        "a row of the CSV has too few or too many values; mend it, or its quotes.",
    ),
    ("MALFORMED_CSV_RECORD", InputError, "a row of the CSV has too few or too many values; mend it, or its quotes."),
    (
        "Illegal Parquet type",
        InputError,
        "a column has a type that Spark cannot read, such as times in nanoseconds; write microseconds.",
    ),
    ("UNABLE_TO_INFER_SCHEMA", InputError, "there is no data in the folder; wanted CSV or Parquet files."),
    ("CANNOT_READ_FILE_FOOTER", InputError, "the file is broken or of another format; wanted CSV (.csv) or Parquet."),
)
"""What Spark says, by a part of its words, that a user can do something about."""
