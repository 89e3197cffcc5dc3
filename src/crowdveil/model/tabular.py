"""Show data in a notebook, and hand it to other libraries as a table: Arrow, pandas, GeoPandas, polars."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

from crowdveil.errors import import_extra

SHOWN_ROWS = 6
"""Rows of a table that a notebook shows."""
ROWS_AT_ONCE = 10_000
"""Rows of a table that are turned to Python values at a time."""
SHOWN_CHARACTERS = 40
"""Characters of a value that a notebook shows."""


class Tabular:
    """Data with a table: short in a notebook, and any kind of frame on demand."""

    def to_arrow(self) -> pa.Table:
        """Return the data as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return the data as a pandas frame. Needs pandas (extra `pandas`)."""
        import_extra("pandas", "pandas", "pandas", "A pandas frame")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """Return the data as a polars frame. Needs polars (extra `polars`)."""
        return import_extra("polars", "polars", "polars", "A polars frame").from_arrow(self.to_arrow())

    def to_geopandas(self) -> Any:
        """Return the data as a GeoDataFrame in WGS 84 with the outlines, or points. Needs GeoPandas (extra `pandas`)."""
        geopandas = import_extra("geopandas", "geopandas", "pandas", "A GeoDataFrame")
        return geopandas.GeoDataFrame(self.to_pandas(), geometry=self.shapes(), crs="EPSG:4326")

    def shapes(self) -> Any:
        """Return the outline or point of each row as shapely geometries in WGS 84; raises where rows have none."""
        raise TypeError(f"{type(self).__name__} has no geometry. Use to_pandas().")

    def summary(self) -> str:
        """Return the size of the data in a few words."""
        return f"{len(self.to_arrow()):,} rows"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Export the table through the Arrow interchange, by which polars, DuckDB and others take it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def _repr_html_(self) -> str:
        """Return the size and the first rows, as a notebook shows them."""
        return f"<p><b>{type(self).__name__}</b>: {escape(self.summary())}</p>{html_rows(self.to_arrow())}"


class TableProperty(Tabular):
    """Data whose table is the property `table`."""

    @property
    def table(self) -> pa.Table:
        """The table."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.table


@dataclass(frozen=True, eq=False, repr=False)
class Table(Tabular):
    """A table of a release or a result, with the outlines of its rows where it has them."""

    arrow: pa.Table
    geometry: Any = None

    def to_arrow(self) -> pa.Table:
        """Return the table."""
        return self.arrow

    def shapes(self) -> Any:
        """Return the outline of each row."""
        return super().shapes() if self.geometry is None else self.geometry

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.arrow.column_names)

    def head(self, rows: int = 5) -> Table:
        """Return the first rows."""
        return Table(self.arrow.slice(0, rows), None if self.geometry is None else self.geometry[:rows])

    def __len__(self) -> int:
        return len(self.arrow)

    def __getitem__(self, names: str | list[str]) -> Any:
        """Return a column as a numpy array, or a table of the columns in a list."""
        if isinstance(names, list):
            return Table(self.arrow.select(names), self.geometry)
        return self.arrow[names].to_numpy()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each row as names and values, so that `pd.DataFrame(table)` has the same columns."""
        for batch in self.arrow.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from batch.to_pylist()

    def summary(self) -> str:
        """Return the number of rows, and the columns."""
        return f"{len(self):,} rows of {', '.join(self.columns)}"


def align_rows(rows: list[list[str]], left: int = 1, *, remarks: bool = False) -> list[str]:
    """Align rows of text: the first `left` columns left, and the last one if it has `remarks`; the others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = range(left, len(widths) - remarks)
    cells = [[c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
             for row in rows]  # fmt: skip
    return ["  ".join(row).rstrip() for row in cells]


def numbers_or_null(values: list[float]) -> Any:
    """Return a column of numbers, null where undefined."""
    return pa.array([value if math.isfinite(value) else None for value in values], pa.float64())


def plain_column(values: list[Any]) -> Any:
    """Return a column of numbers, or of texts where a value is none; None becomes null."""
    numbers = all(value is None or isinstance(value, int | float) for value in values)
    return pa.array(values if numbers else [None if value is None else str(value) for value in values])


def html_rows(table: pa.Table) -> str:
    """Return the first rows of a table as HTML."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(_short(value))}</td>' for value in row.values())}</tr>"
        for row in table.slice(0, SHOWN_ROWS).to_pylist()
    )
    more = f"<p>and {len(table) - SHOWN_ROWS:,} more rows</p>" if len(table) > SHOWN_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _short(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
