"""Escape text in CSV files that a spreadsheet would run as a formula, by a leading apostrophe.

A zone name is untrusted text: `=HYPERLINK(…)` would run in the reader's spreadsheet. Tables of a release are read with
`unescape_formulas`, which restores the names. Plain numbers, such as -5, are not escaped.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^'*[=+\-@\t\r\n]"
_ESCAPED = r"^'+[=+\-@\t\r\n]"
_NUMBER = r"^[+\-]?(\d+\.?\d*|\.\d+|inf|nan)([eE][+\-]?\d+)?$"


def escape_formulas(table: pa.Table) -> pa.Table:
    """Return a table in which no text value is a formula."""
    return _map_text(table, _escape)


def unescape_formulas(table: pa.Table) -> pa.Table:
    """Return the table as it was before `escape_formulas`."""
    return _map_text(table, lambda column: _replace(column, _ESCAPED, lambda texts: pc.utf8_slice_codeunits(texts, 1)))


def _escape(column: Any) -> Any:
    found = _replace(column, _FORMULA, lambda texts: pc.binary_join_element_wise("'", texts, ""))
    return found if found is column else pc.if_else(pc.match_substring_regex(column, _NUMBER), column, found)


def _replace(column: Any, pattern: str, change: Any) -> Any:
    """Change the texts that match; return the column itself if none does."""
    matches = pc.match_substring_regex(column, pattern)
    return pc.if_else(matches, change(column), column) if pc.any(matches).as_py() else column


def _map_text(table: pa.Table, change: Any) -> pa.Table:
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(number)
            changed = change(column)
            if changed is not column:
                table = table.set_column(number, field, changed)
    return table
