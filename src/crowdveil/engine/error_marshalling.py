"""Errors that cross from Spark's executors to the driver, where only the text of an exception arrives."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from crowdveil.errors import ERRORS, CrowdveilError, InputError, Option, ParameterError

T = TypeVar("T")
_MARK = "crowdveil-error:"


def call_marked(function: Callable[[Any], T], argument: Any) -> T:
    """Call a function on an executor; an error of ours is sent as a marked JSON record."""
    try:
        return function(argument)
    except CrowdveilError as error:
        raise RuntimeError(_MARK + json.dumps({"code": error.code, "text": error.text})) from None


def iterate_marked(function: Callable[[Any], Iterator[T]], chunks: Any) -> Iterator[T]:
    """Iterate over what a function yields on an executor; an error of ours is sent as a marked JSON record."""
    made = function(chunks)
    while (chunk := call_marked(lambda it: next(it, None), made)) is not None:
        yield chunk


def restored(error: Exception) -> Exception:
    """Return the error of ours that an executor sent, one that explains a known error of Spark, or the error itself."""
    text = str(error)
    _, mark, rest = text.partition(_MARK)
    if mark:
        sent, _ = json.JSONDecoder().raw_decode(rest)
        return ERRORS.get(sent["code"], InputError).from_text(sent["text"])
    return next((made for words, made in _KNOWN if words in text), error)


_ROW = InputError("a row of the CSV has too few or too many values; fix it, or its quotes.")
_KNOWN: tuple[tuple[str, CrowdveilError], ...] = (
    (
        "No module named 'crowdveil'",
        ParameterError(
            Option("engine", "spark"), "the workers' Python has no crowdveil; pack it for them, as docs/spark.md says."
        ),
    ),
    ("MALFORMED_RECORD_IN_PARSING", _ROW),
    ("MALFORMED_CSV_RECORD", _ROW),
    (
        "Illegal Parquet type",
        InputError("a column has a type that Spark cannot read, such as times in nanoseconds; write microseconds."),
    ),
    ("UNABLE_TO_INFER_SCHEMA", InputError("there is no data in the folder; wanted CSV or Parquet files.")),
    (
        "CANNOT_READ_FILE_FOOTER",
        InputError("the file is broken or of another format; wanted CSV (.csv) or Parquet."),
    ),
)
"""Errors of Spark that a user can fix, by Spark's name for them."""
