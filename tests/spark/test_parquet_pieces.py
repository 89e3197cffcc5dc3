"""Row groups of Parquet files that executors read by themselves: the rows that Spark would give, or none of them."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.errors import InputError
from crowdveil.run.spark.parquet_pieces import PieceReader, parquet_pieces, same_columns

TRIPS = pa.table({
    "unused": ["p"] * 5, "origin": pa.array([1, 2, 3, 4, 5], pa.int16()), "person": ["a", None, "c", "d", "e"],
    "time": pa.array([1, 2, 3, 4, 5], pa.timestamp("ms", tz="Europe/Paris")),
})  # fmt: skip
WANTED = pa.schema([("time", pa.timestamp("us", tz="UTC")), ("origin", pa.int16()), ("person", pa.string())])


def itself(rows: Any) -> Any:
    return rows


def _pieces(paths: list[Path] | None, data: Any = "trips", wanted: pa.Schema = WANTED) -> pa.Table | None:
    found = None if paths is None else [str(path) for path in paths]
    engine: Any = SimpleNamespace(files=SimpleNamespace(local_files=lambda address: found))
    return parquet_pieces(engine, data, wanted)


def test_pieces_have_all_rows_with_the_types_of_spark(tmp_path: Path) -> None:
    for name in ("one", "two"):
        pq.write_table(TRIPS, tmp_path / name, row_group_size=2)
    pieces = _pieces([tmp_path / "one", tmp_path / "two"])
    assert pieces is not None and pieces["row_group"].to_pylist() == [0, 1, 2] * 2
    reader = pickle.loads(pickle.dumps(PieceReader("trips", WANTED, itself)))
    rows = pa.Table.from_batches(list(reader(iter(pieces.to_batches(max_chunksize=4)))), WANTED)
    expected = TRIPS.select(WANTED.names).cast(WANTED)
    assert rows.equals(pa.concat_tables([expected, expected]).combine_chunks())


@pytest.mark.parametrize("ids", [(), ("person", "origin")])
def test_dictionaries_are_read_as_their_values(ids: tuple[str, ...], tmp_path: Path) -> None:
    kept = TRIPS.set_column(2, "person", TRIPS["person"].dictionary_encode())
    pq.write_table(kept, tmp_path / "kept")
    pq.write_table(TRIPS, tmp_path / "plain")
    pieces = _pieces([tmp_path / "kept", tmp_path / "plain"])
    assert pieces is not None, "Spark reads the same values"
    made = list(PieceReader("trips", WANTED, itself, ids)(iter(pieces.to_batches())))
    assert {pa.types.is_dictionary(rows["person"].type) for rows in made} == {bool(ids)}
    expected = TRIPS.select(WANTED.names).cast(WANTED)
    assert all(pa.Table.from_batches([rows]).cast(WANTED).equals(expected) for rows in made)


def test_a_dictionary_of_other_values_is_left_to_spark() -> None:
    kept = pa.schema([("person", pa.dictionary(pa.int8(), pa.string()))])
    assert same_columns(kept, pa.schema([("person", pa.string())]))
    assert not same_columns(kept, pa.schema([("person", pa.int8())]))


@pytest.mark.parametrize(
    ("column", "kind"),
    [("time", pa.timestamp("us")), ("time", pa.timestamp("ns", tz="UTC")), ("origin", pa.int64()), ("other", pa.string()),
     ("person", pa.binary())],
)  # fmt: skip
def test_what_spark_reads_in_another_way_is_left_to_it(column: str, kind: Any, tmp_path: Path) -> None:
    assert same_columns(TRIPS.schema, WANTED)
    assert not same_columns(TRIPS.schema, pa.schema([(column, kind)]))
    pq.write_table(TRIPS, tmp_path / "one")
    assert _pieces([tmp_path / "one"], wanted=pa.schema([(column, kind)])) is None


def test_files_elsewhere_and_tables_are_left_to_spark(tmp_path: Path) -> None:
    pq.write_table(TRIPS.slice(0, 0), tmp_path / "empty")
    assert _pieces(None) is None and _pieces([]) is None and _pieces([tmp_path / "empty"], object()) is None
    pq.write_table(TRIPS, tmp_path / "one")
    assert _pieces([tmp_path / "one"], object()) is None


def test_a_damaged_row_group_is_one_sentence(tmp_path: Path) -> None:
    pq.write_table(TRIPS, tmp_path / "one", compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "one").read_bytes())
    content[4:120] = bytes(116)
    (tmp_path / "one").write_bytes(content)
    pieces = _pieces([tmp_path / "one"])
    assert pieces is not None
    with pytest.raises(InputError, match="trips"):
        list(PieceReader("trips", WANTED, itself)(iter(pieces.to_batches())))
