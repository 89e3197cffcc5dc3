"""Text in CSV files that a spreadsheet would take for a formula: an apostrophe before it makes it text there.

A name of a zone can come from anybody, and `=HYPERLINK(…)` would run on the machine of who opens the file. Tables of a release
are read back by `unescaped`, so that names are the same again; plain numbers, such as -5, are left as they are.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^'*[=+\-@\t\r\n]"
_ESCAPED = r"^'+[=+\-@\t\r\n]"
_NUMBER = r"^[+\-]?(\d+\.?\d*|\.\d+|inf|nan)([eE][+\-]?\d+)?$"


def escaped(table: pa.Table) -> pa.Table:
    """Return a table in whose columns of text no value is a formula."""
    return _each_text(table, _escape)


def unescaped(table: pa.Table) -> pa.Table:
    """Return the table that was escaped."""
    return _each_text(
        table, lambda column: _replaced(column, _ESCAPED, lambda texts: pc.utf8_slice_codeunits(texts, 1))
    )


def _escape(column: Any) -> Any:
    found = _replaced(column, _FORMULA, lambda texts: pc.binary_join_element_wise("'", texts, ""))
    return found if found is column else pc.if_else(pc.match_substring_regex(column, _NUMBER), column, found)


def _replaced(column: Any, pattern: str, change: Any) -> Any:
    """Change the texts that match; the column itself where none does."""
    matches = pc.match_substring_regex(column, pattern)
    return pc.if_else(matches, change(column), column) if pc.any(matches).as_py() else column


def _each_text(table: pa.Table, change: Any) -> pa.Table:
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(number)
            made = change(column)
            if made is not column:
                table = table.set_column(number, field, made)
    return table
