"""Errors that cross from executors to the driver as data: as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from crowdveil.errors import CrowdveilError, InputError, Option, ParameterError, as_json, from_json

T = TypeVar("T")
_MARK = "crowdveil-error:"


def marshal_errors(function: Callable[[Any], T], argument: Any) -> T:
    """Call a function on an executor; only the text of its error reaches the driver, so that JSON is put into it."""
    try:
        return function(argument)
    except CrowdveilError as error:
        raise RuntimeError(_MARK + json.dumps(as_json(error.code, error.text))) from None


def marshal_errors_of_chunks(function: Callable[[Any], Iterator[T]], chunks: Any) -> Iterator[T]:
    """Yield what a generator yields; its errors are marshalled as by `marshal_errors`."""
    made = function(chunks)
    while (chunk := marshal_errors(lambda it: next(it, None), made)) is not None:
        yield chunk


def unmarshal_error(error: Exception) -> Exception:
    """Return an error of ours as it was raised on an executor, one of Spark that a user can fix, or the error itself."""
    text = str(error)
    _, mark, content = text.partition(_MARK)
    if mark:
        sent, _ = json.JSONDecoder().raw_decode(content)
        return from_json(sent)
    return next((known for words, known in _KNOWN if words in text), error)


_CSV = InputError("a row of the CSV has too few or too many values. Fix it, or its quotes.")
_KNOWN: tuple[tuple[str, CrowdveilError], ...] = (
    (
        "No module named 'crowdveil'",
        ParameterError(
            Option("engine", "spark"), "the workers' Python has no crowdveil. Pack it for them, as docs/spark.md says."
        ),
    ),
    ("MALFORMED_RECORD_IN_PARSING", _CSV),
    ("MALFORMED_CSV_RECORD", _CSV),
    (
        "Illegal Parquet type",
        InputError("a column has a type that Spark cannot read, such as times in nanoseconds. Write microseconds."),
    ),
    ("PATH_NOT_FOUND", InputError("there is no such file or folder. Name one that exists.")),
    ("UNABLE_TO_INFER_SCHEMA", InputError("there is no data in the folder. Expected CSV or Parquet files.")),
    (
        "CANNOT_READ_FILE_FOOTER",
        InputError("the file is broken or of another format. Expected CSV (.csv) or Parquet."),
    ),
)
"""Errors of Spark that a user can fix, by their error class or a part of their text."""
