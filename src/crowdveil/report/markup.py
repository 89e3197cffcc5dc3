"""Pieces of the report's HTML: escaped text, figures and tables.

Plain functions, since a template language takes a tenth of a second to import and to compile a template, in every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from crowdveil.report.page_model import Figure, Table

_ESCAPED = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#39;", '"': "&#34;"})


def escape(value: Any) -> str:
    """Return a value as text of an element or of an attribute."""
    return str(value).translate(_ESCAPED)


def lines(pieces: Iterable[str]) -> str:
    """Return pieces, each followed by the end of its line."""
    return "".join(f"{piece}\n" for piece in pieces)


def shown(value: Any) -> str:
    """Format a parameter for readers."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        return ", ".join(shown(inner) for inner in value)
    return f"{value:,}" if isinstance(value, int) and abs(value) >= 1000 else str(value)


def figure(drawn: Figure) -> str:
    """Return a figure with its caption, legend and description."""
    legend = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true"><rect class="{escape(color)}" width="10" height="10"/></svg>'
        f"{escape(label)}</li>"
        for color, label in drawn.legend
    )
    listed = f'\n  <ul class="legend">{legend}</ul>' if drawn.legend else ""
    return (
        f"<figure>\n  <figcaption>{escape(drawn.title)}</figcaption>\n  {drawn.svg}{listed}\n"
        f"  <p>{escape(drawn.text)}</p>\n</figure>\n"
    )


def framed(label: str, table: str) -> str:
    """Return a table in a region that scrolls, with a name for screen readers."""
    return f'<div class="wide" role="region" aria-label="{escape(label)}" tabindex="0">{table}</div>'


def pairs(caption: str, rows: Iterable[tuple[Any, Any]]) -> str:
    """Return a table of names and values."""
    body = lines(
        f'<tr><th scope="row">{escape(str(name).replace("_", " "))}</th><td>{escape(shown(value))}</td></tr>'
        for name, value in rows
    )
    return framed(
        caption,
        f'<table class="pairs"><caption>{escape(caption)}</caption><tbody>\n{body}</tbody></table>',
    )


def data_table(table: Table) -> str:
    """Return a table of the page; columns of numbers are right-aligned."""
    rows = (
        f"<tr>{''.join(f'<td{_numeric(n)}>{escape(cell)}</td>' for cell, n in zip(row, table.numbers, strict=True))}</tr>"
        for row in table.rows
    )
    return table_of(table.title, table.title, list(zip(table.head, table.numbers, strict=True)), rows)


def table_of(label: str, caption: str, columns: Sequence[tuple[str, bool]], rows: Iterable[str], look: str = "") -> str:
    """Return a table of rows that are HTML, with the names of its columns, and whether they have numbers.

    Rows of a table that looks "stacked" become blocks on a narrow screen.
    """
    style = f' class="{look}"' if look else ""
    cells = "".join(f'<th scope="col"{_numeric(is_number)}>{escape(name)}</th>' for name, is_number in columns)
    return framed(
        label,
        f"<table{style}><caption>{escape(caption)}</caption>\n  <thead><tr>{cells}</tr></thead>\n  "
        f"<tbody>{lines(rows)}</tbody></table>",
    )


def _numeric(is_number: bool) -> str:
    return ' class="n"' if is_number else ""
