"""A table wherever it lies: CSV, Parquet, Arrow, pandas. Knows columns and rows, not what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.errors import InputError, rows_named

DELIMITERS = (",", ";", "\t", "|")
MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
CSV_SUFFIXES = (".csv", ".tsv", ".txt")


@dataclass(frozen=True)
class Source:
    """An opened table.

    Attributes
    ----------
    name
        What messages call it.
    schema
        Its columns; those of a CSV are all text.
    path
        The file, or None for a table in memory.
    table
        The table in memory, or None for a file.
    delimiter
        For a CSV, the character between values.
    """

    name: str
    schema: pa.Schema
    path: Path | None = None
    table: pa.Table | None = None
    delimiter: str | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def is_parquet(self) -> bool:
        """Whether the engine can read the file itself."""
        return self.path is not None and self.delimiter is None

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The whole table, or the given columns of it."""
        wanted = self.columns if columns is None else list(dict.fromkeys(columns))
        if self.table is not None:
            return self.table.select(wanted)
        if self.is_parquet:
            with _one_sentence(self.name):
                return pq.read_table(self.path, columns=wanted)
        return pa.Table.from_batches(self._csv_batches(wanted), pa.schema([(c, pa.string()) for c in wanted]))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The given columns piece by piece, in the order of the rows."""
        wanted = list(dict.fromkeys(columns))
        if self.table is not None:
            yield from self.table.select(wanted).to_batches(max_chunksize=1 << 18)
        elif self.is_parquet:
            with _one_sentence(self.name), pq.ParquetFile(self.path) as file:
                yield from file.iter_batches(batch_size=1 << 18, columns=wanted)
        else:
            yield from self._csv_batches(wanted)

    def _csv_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        with _one_sentence(self.name):
            reader = _open_csv(self.path, self.delimiter or ",", columns, _refuse_row(self.name))
            with reader:
                yield from reader


def open_source(data: Any) -> Source:
    """Open a path, or take an Arrow table, a pandas or GeoPandas frame, or anything that speaks Arrow."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return _open_file(Path(data))
    table = _as_table(data)
    if table.num_columns == 0 or table.num_rows == 0:
        raise InputError("the table has no rows: wanted at least one.")
    return Source("the table", table.schema, table=table)


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "geometry") and hasattr(data, "to_wkb"):
        return _geoframe_as_table(data)
    if type(data).__module__.split(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise InputError(
        f"wanted a path, an Arrow table or a data frame, but got {type(data).__name__}; give one of those."
    )


def _geoframe_as_table(frame: Any) -> pa.Table:
    """A GeoDataFrame of points gives columns lon and lat; outlines are for `read_zones`."""
    points = frame.geometry if frame.crs is None else frame.geometry.to_crs("OGC:CRS84")
    if not (points.geom_type == "Point").all():
        raise InputError("a GeoDataFrame with data must hold points; give outlines as zones instead.")
    plain = frame.drop(columns=frame.geometry.name).assign(lon=points.x.to_numpy(), lat=points.y.to_numpy())
    return pa.Table.from_pandas(plain, preserve_index=False)


def _open_file(path: Path) -> Source:
    if path.is_dir():
        raise InputError(f"{path}: wanted a file, but this is a folder.")
    if not path.exists():
        raise InputError(f"{path}: there is no such file.")
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None
    if not head:
        raise InputError(f"{path}: the file is empty; wanted a header and at least one row.")
    if head == b"PAR1" or path.suffix in (".parquet", ".geoparquet", ".pq"):
        return _open_parquet(path)
    return _open_csv_source(path)


def _open_parquet(path: Path) -> Source:
    with _one_sentence(str(path)):
        with pq.ParquetFile(path) as file:
            rows, schema = file.metadata.num_rows, file.schema_arrow
        if rows == 0:
            raise InputError(f"{path}: the file has columns but no rows; wanted at least one.")
        return Source(str(path), schema, path=path)


def _open_csv_source(path: Path) -> Source:
    stem = path.with_suffix("") if path.suffix in (".gz", ".bz2", ".zst") else path
    if stem.suffix.lower() not in CSV_SUFFIXES:
        raise InputError(f"{path}: wanted a CSV or Parquet file; name it .csv, .tsv, .txt or .parquet.")
    with _one_sentence(str(path)):
        with pa.input_stream(str(path), compression="detect") as stream:
            head = stream.read(1 << 16)
        first_line = head.decode("utf-8-sig", errors="replace").partition("\n")[0]
        delimiter = max(DELIMITERS, key=first_line.count)
        with _open_csv(path, delimiter, None, _refuse_row(str(path))) as reader:
            schema = reader.schema
            has_rows = any(batch.num_rows for batch in reader)
        if not has_rows:
            raise InputError(f"{path}: the file has a header but no rows; wanted at least one.")
    repeated = sorted({c for c in schema.names if schema.names.count(c) > 1})
    if repeated:
        raise InputError(f"{path}: {len(repeated)} column names stand twice in the header; rename them.")
    return Source(str(path), schema, path=path, delimiter=delimiter)


def _open_csv(path: Path | None, delimiter: str, columns: list[str] | None, refuse: Any) -> Any:
    names = columns if columns is not None else _header(path, delimiter)
    return pacsv.open_csv(
        pa.input_stream(str(path), compression="detect"),
        read_options=pacsv.ReadOptions(block_size=8 << 20),
        parse_options=pacsv.ParseOptions(delimiter=delimiter, invalid_row_handler=refuse),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=columns,
            strings_can_be_null=True,
            null_values=MISSING,
        ),
    )


def _header(path: Path | None, delimiter: str) -> list[str]:
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(1 << 16)
    line = head.split(b"\n")[0] + b"\n"
    table = pacsv.read_csv(
        pa.BufferReader(line),
        parse_options=pacsv.ParseOptions(delimiter=delimiter),
        convert_options=pacsv.ConvertOptions(strings_can_be_null=True),
    )
    return list(table.column_names)


def _refuse_row(name: str) -> Any:
    def refuse(row: Any) -> str:
        # The header is line 1 for the parser, and rows are counted from 1 without it.
        number = [] if row.number is None else [row.number - 1]
        raise InputError(
            f"{name}: wanted {row.expected_columns} values a row, but {rows_named(number, 1)} has "
            f"{row.actual_columns}; mend the row, or its quotes."
        )

    return refuse


class _one_sentence:  # noqa: N801  (reads as a phrase where it is used)
    """Turn what the libraries say about a broken file into one sentence of ours."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, pa.ArrowInvalid) and "UTF8" in str(error):
            raise InputError(f"{self.name}: the text is not UTF-8; save the file in that encoding.") from None
        if isinstance(error, pa.ArrowException):
            raise InputError(
                f"{self.name}: the file is broken or of another format; write it anew, or check its name's ending."
            ) from None
        if isinstance(error, OSError):
            raise InputError(f"{self.name}: the file is broken or cannot be read; write it anew.") from None
