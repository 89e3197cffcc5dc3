"""Open tables: CSV, Parquet, Arrow, pandas. Columns and rows only, without their meaning."""

from __future__ import annotations

import codecs
import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from crowdveil.engine import extensions
from crowdveil.errors import InputError, counted, rows_named

MISSING = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"]
_SIGNS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
CSV_SUFFIXES = (".csv", ".tsv", ".txt")
MAX_LISTED = 200_000
"""Columns, or row groups, that the footer of a Parquet file may list: each takes memory before a value is read."""
READERS = "crowdveil.readers"
"""Entry points of other packages: a function from a path to a table, under the ending of its files."""
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods")
DELIMITERS = (",", ";", "\t", "|")
MAX_COLUMNS = 10_000
"""Columns of a table. Every column takes memory before a value of it is read."""
MAX_HEADER_BYTES = 4 << 20
"""Bytes of the first line of a CSV."""
HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Source:
    """An opened table.

    Attributes
    ----------
    name
        Its name in messages.
    schema
        Its columns; all text for a CSV.
    path
        The file, or the folder of Parquet files; None for a table in memory.
    files
        The Parquet files of a folder, by name; empty for one file.
    table
        The table in memory; None for a file.
    delimiter
        For a CSV, the character between values.
    """

    name: str
    schema: pa.Schema
    path: Path | None = None
    table: pa.Table | None = None
    delimiter: str | None = None
    files: tuple[Path, ...] = ()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    @property
    def is_parquet(self) -> bool:
        """Whether it is a Parquet file or a folder of them."""
        return self.path is not None and self.delimiter is None

    @property
    def parquet_files(self) -> tuple[Path, ...]:
        """The Parquet files, in the order of their rows."""
        return self.files or (() if self.path is None else (self.path,))

    def read(self, columns: Sequence[str] | None = None, *, as_is: bool = False) -> pa.Table:
        """Return the whole table, or the given columns. With `as_is`, "NA" and the like in a CSV stay text."""
        wanted = self.columns if columns is None else list(dict.fromkeys(columns))
        if self.table is not None:
            return self.table.select(wanted)
        if self.is_parquet:
            with _read_errors(self.name):
                # A buffer of the whole file would take half as much memory as the table.
                tables = (pq.read_table(file, columns=wanted, pre_buffer=False) for file in self.parquet_files)
                return pa.concat_tables([_validated(table) for table in tables])
        schema = pa.schema([(c, pa.string()) for c in wanted])
        return pa.Table.from_batches(self._csv_batches(wanted, as_is=as_is), schema)

    def batches(self, columns: Sequence[str], ids: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        """Yield the given columns in chunks, in row order; those in `ids` dictionary-encoded where that is faster."""
        wanted = list(dict.fromkeys(columns))
        if self.table is not None:
            yield from self.table.select(wanted).to_batches(max_chunksize=1 << 18)
        elif self.is_parquet:
            text = [c for c in ids if c in wanted and pa.types.is_string(self.schema.field(c).type)]
            for path in self.parquet_files:
                # With pre_buffer, all of the file that was read stays in memory until it is closed.
                with _read_errors(self.name), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
                    yield from map(_validated, file.iter_batches(batch_size=1 << 18, columns=wanted))
        else:
            yield from self._csv_batches(wanted)

    def _csv_batches(self, columns: list[str], *, as_is: bool = False) -> Iterator[pa.RecordBatch]:
        # An unclosed quote puts the rest of the file into the last value, so that value is checked.
        path, last, tail = _csv_path(self.path), self.columns[-1], None
        with _read_errors(self.name, path, self.delimiter or ","):
            with _open_csv(path, self.delimiter or ",", list(dict.fromkeys([*columns, last])), as_is=as_is) as reader:
                for batch in reader:
                    tail = batch[last][-1].as_py() if batch.num_rows else tail
                    yield batch.select(columns)
            if tail is not None and ("\n" in tail or "\r" in tail) and _odd_quotes(path):
                raise InputError(self.name, "a quote is opened and never closed. Fix its row.")


def open_source(data: Any) -> Source:
    """Open a path, an Arrow table, a pandas or GeoPandas frame, or an object with the Arrow C stream interface."""
    if isinstance(data, Source):
        return data
    if isinstance(data, str | Path):
        return _open_file(Path(data))
    table = _as_table(data)
    if table.num_columns == 0 or table.num_rows == 0:
        raise InputError("the table has no rows. Expected at least one.")
    return _checked(Source("the table", table.schema, table=table))


def _checked(source: Source) -> Source:
    """Raise if a table has repeated column names or too many columns."""
    refuse_wide(source.name, len(source.schema))
    repeated = [c for c, times in Counter(source.columns).items() if times > 1]
    if repeated:
        raise InputError(source.name, f"names of columns repeat in the header ({len(repeated):,}). Rename the columns.")
    return source


def _as_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "geometry") and hasattr(data, "to_wkb"):
        return _geoframe_as_table(data)
    if type(data).__module__.split(".")[0] == "pandas":
        return from_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _without_views(pa.table(data))
    raise InputError(f"Expected a path, an Arrow table or a data frame, got {type(data).__name__}. Give one of those.")


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table with text and bytes in plain columns: polars gives views, which few functions take."""
    plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):  # of Categorical and Enum
            kind = plain.get(field.type.value_type, field.type.value_type)
            chunks = [chunk.dictionary.cast(kind).take(chunk.indices) for chunk in table[field.name].chunks]
            table = table.set_column(i, field.name, pa.chunked_array(chunks, kind))
    return table.cast(pa.schema([field.with_type(plain.get(field.type, field.type)) for field in table.schema]))


def from_pandas(frame: Any) -> pa.Table:
    """Return a data frame as a table without its index."""
    refuse_wide("the table", len(frame.columns))
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError):
        raise InputError(
            "a column of the data frame mixes types, or its name repeats. Make it all text or all numbers."
        ) from None


def _geoframe_as_table(frame: Any) -> pa.Table:
    """Return a GeoDataFrame of points as a table with the columns lon and lat."""
    points = frame.geometry if frame.crs is None else frame.geometry.to_crs("OGC:CRS84")
    if not (points.geom_type == "Point").all():
        raise InputError("a GeoDataFrame with data must hold points. Give outlines as zones instead.")
    plain = frame.drop(columns=frame.geometry.name).assign(lon=points.x.to_numpy(), lat=points.y.to_numpy())
    return from_pandas(plain)


def _open_file(path: Path) -> Source:
    if path.is_dir():
        return _open_folder(path)
    if not path.exists():
        raise InputError(path, "there is no such file. Check its path.")
    try:
        with path.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror}).") from None
    if not head:
        raise InputError(path, "the file is empty. Expected a header and at least one row.")
    if head == b"PAR1" or path.suffix in (".parquet", ".geoparquet", ".pq"):
        return _open_parquet(path)
    return _open_csv_source(path)


def _open_folder(folder: Path) -> Source:
    """Open the Parquet files of a folder as one table; raise unless they have the same columns."""
    files = tuple(sorted(path for path in folder.iterdir() if path.suffix in (".parquet", ".pq") and path.is_file()))
    if not files:
        raise InputError(folder, "this is a folder without Parquet files. Give a file, or a folder of Parquet files.")
    opened = [_open_parquet(file) for file in files]
    other = next((source for source in opened if not source.schema.equals(opened[0].schema)), None)
    if other is not None:
        raise InputError(
            folder,
            f"the columns of {files[0].name} and {Path(other.name).name} differ in their names, order or types. Write all "
            "files of the folder with the same columns.",
        )
    return Source(str(folder), opened[0].schema, path=folder, files=files)


def _open_parquet(path: Path) -> Source:
    with _read_errors(str(path)):
        with pq.ParquetFile(path, thrift_container_size_limit=MAX_LISTED) as file:
            refuse_wide(str(path), file.metadata.num_columns)
            has_rows, schema = file.metadata.num_rows > 0, file.schema_arrow
        if not has_rows:
            raise InputError(path, "the file has columns but no rows. Expected at least one.")
        return _checked(Source(str(path), schema, path=path))


def _open_csv_source(path: Path) -> Source:
    stem = path.with_suffix("") if path.suffix in (".gz", ".bz2", ".zst") else path
    if stem.suffix.lower() in SPREADSHEETS:
        raise InputError(path, "Expected a CSV or Parquet file, got a spreadsheet. Save it as CSV.")
    ending = path.suffix.lower().removeprefix(".")
    if ending in extensions.installed(READERS):
        return replace(open_source(extensions.load(READERS, ending, FunctionType)(path)), name=str(path))
    if stem.suffix.lower() not in CSV_SUFFIXES:
        raise InputError(path, "Expected a CSV or Parquet file. Name it .csv, .tsv, .txt or .parquet.")
    with _read_errors(str(path)), pa.input_stream(str(path), compression="detect") as stream:
        head = csv_head(stream, str(path))
    header, row = _first_lines(path, head)
    delimiter = delimiter_of(header, row)
    with _read_errors(str(path), path, delimiter), _open_csv(path, delimiter, None) as reader:
        schema = reader.schema
        has_rows = any(batch.num_rows for batch in reader)
    if not has_rows:
        raise InputError(path, "the file has a header but no rows. Expected at least one.")
    return _checked(Source(str(path), schema, path=path, delimiter=delimiter))


def _first_lines(path: Path, head: bytes) -> tuple[str, str | None]:
    """Return the header of a CSV that begins with `head`, and the first row if it is whole; raise without text or row."""
    if b"\0" in head or head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise _not_utf8(str(path))
    lines = [line for line in head.splitlines() if line.strip()]
    if not lines:
        raise InputError(path, "the file is empty. Expected a header and at least one row.")
    if len(lines) == 1 and len(head) < HEAD_BYTES:
        raise InputError(path, "the file has a header but no rows. Expected at least one.")
    try:
        return lines[0].decode("utf-8-sig"), lines[1].decode(errors="replace") if len(lines) > 2 else None
    except UnicodeDecodeError:
        raise _not_utf8(str(path)) from None


def _validated(chunk: Any) -> Any:
    """Return a chunk of a Parquet file after checking that its text is valid; later steps rely on it."""
    chunk.validate(full=True)
    return chunk


def _not_utf8(name: str) -> InputError:
    return InputError(name, "the text is not UTF-8. Save the file in that encoding.")


def _csv_path(path: Path | None) -> Path:
    if path is None:
        raise TypeError("a source with a delimiter is a file")
    return path


def _open_csv(
    path: Path, delimiter: str, columns: list[str] | None, *, as_is: bool = False, on_bad_row: Any = None
) -> Any:
    names = columns if columns is not None else _header(path, delimiter)
    return pacsv.open_csv(
        pa.input_stream(str(path), compression="detect"),
        # Row numbers need one thread; they are used only to name a bad row.
        read_options=pacsv.ReadOptions(block_size=8 << 20, use_threads=on_bad_row is None),
        parse_options=pacsv.ParseOptions(delimiter=delimiter, invalid_row_handler=on_bad_row),
        convert_options=pacsv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            include_columns=columns,
            strings_can_be_null=not as_is,
            null_values=MISSING,
        ),
    )


def _header(path: Path, delimiter: str) -> list[str]:
    with pa.input_stream(str(path), compression="detect") as stream:
        head = csv_head(stream, str(path))
    line = next((line for line in head.splitlines() if line.strip()), b"") + b"\n"
    table = pacsv.read_csv(
        pa.BufferReader(line),
        parse_options=pacsv.ParseOptions(delimiter=delimiter),
        convert_options=pacsv.ConvertOptions(strings_can_be_null=True),
    )
    return list(table.column_names)


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the unpacked bytes of a CSV, some at a time."""
    with pa.input_stream(str(path), compression="detect") as stream:
        while chunk := stream.read(1 << 24):
            yield chunk


def _odd_quotes(path: Path) -> bool:
    """Return whether the number of quotes in the file is odd."""
    return sum(chunk.count(b'"') for chunk in _pieces(path)) % 2 == 1


def _is_utf8(path: Path) -> bool:
    try:
        return all(True for _ in codecs.iterdecode(_pieces(path), "utf-8"))
    except UnicodeDecodeError:
        return False
    except OSError:  # broken in another way
        return True


def _bad_row(name: str, path: Path, delimiter: str) -> InputError | None:
    """Return an error for the first row with too few or too many values; None if there is none."""
    found: list[InputError] = []

    def note(row: Any) -> str:
        # The header is line 1 for the parser, and rows are counted from 1 without it.
        number = [] if row.number is None else [row.number - 1]
        other = [sign for sign in DELIMITERS if sign != delimiter and row.text.count(sign) == row.expected_columns - 1]
        hint = ""
        if other:
            hint = f"; its delimiters are {_SIGNS[other[0]]} and those of the header are {_SIGNS[delimiter]}"
        elif delimiter == "," and row.actual_columns > row.expected_columns:
            hint = " (for numbers with a decimal comma, use another delimiter, such as a semicolon)"
        found.append(
            InputError(
                name,
                f"Expected {row.expected_columns} values per row, but {rows_named(number, 1)} has "
                f"{row.actual_columns}{hint}. Fix the row, or its quotes.",
            )
        )
        return "error"

    with suppress(pa.ArrowException, OSError), _open_csv(path, delimiter, None, on_bad_row=note) as reader:
        for _ in reader:
            pass
    return found[0] if found else None


@contextmanager
def _read_errors(name: str, csv: Path | None = None, delimiter: str = ",") -> Iterator[None]:
    """Turn errors of libraries about a broken file into an InputError of one sentence."""
    try:
        yield
    except UnicodeDecodeError:
        raise _not_utf8(name) from None
    except pa.ArrowException as error:
        invalid = isinstance(error, pa.ArrowInvalid)
        if invalid and ("UTF8" in str(error) or (csv is not None and not _is_utf8(csv))):
            raise _not_utf8(name) from None
        bad_row = _bad_row(name, csv, delimiter) if invalid and csv is not None else None
        raise bad_row or InputError(
            name, "the file is broken or of another format. Write it again, or check the suffix of its name."
        ) from None
    except OSError:
        raise InputError(name, "the file is broken or cannot be read. Write it again.") from None


def refuse_wide(name: str, columns: int) -> None:
    """Raise if a table has too many columns."""
    if columns > MAX_COLUMNS:
        raise InputError(
            name,
            f"Expected at most {counted(MAX_COLUMNS, 'column')}, but there are more. Remove columns that are not needed.",
        )


def csv_head(stream: Any, name: str) -> bytes:
    """Return the beginning of a CSV with its whole first line; raise if the line is too long."""
    head: bytes = stream.read(HEAD_BYTES)
    while b"\n" not in head and b"\r" not in head and len(head) < MAX_HEADER_BYTES:
        more = stream.read(HEAD_BYTES)
        if not more:
            break
        head += more
    first = head.splitlines()[0] if head.strip() else b""
    if len(first) >= MAX_HEADER_BYTES:
        raise InputError(
            name, f"the first line is longer than {MAX_HEADER_BYTES >> 20} MB. Expected a header with column names."
        )
    # An upper bound of the columns for every delimiter.
    refuse_wide(name, 1 + max(first.count(sign.encode()) for sign in DELIMITERS))
    return head


def delimiter_of(header: str, row: str | None) -> str:
    """Return the delimiter that splits header and first row into equally many columns, else the most frequent one."""

    def score(sign: str) -> tuple[bool, int]:
        cut = [len(next(csv.reader([line], delimiter=sign), [])) for line in (header, row or "")]
        return cut[0] == cut[1] > 1, header.count(sign)

    return max(DELIMITERS, key=score)
