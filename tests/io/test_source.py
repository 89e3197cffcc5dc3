"""Tables wherever they lie."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from crowdveil.errors import InputError
from crowdveil.io.source import Source, open_source

TABLE = pa.table({"a": ["1", "2"], "b": ["x", "y"]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", "a,b\n1,x\n2,y\n"), ("t.csv", "a;b\n1;x\n2;y"), ("t.tsv", "a\tb\n1\tx\n2\ty\n"), ("t.txt", "a|b\n1|x\n2|y\n"),
        ("T.CSV", "a,b\r\n1,x\r\n2,y\r\n"), ("t.csv", "\ufeffa,b\n1,x\n2,y\n"), ("t.csv", 'a,"b"\n"1",x\n2,"y"\n'),
        ("t.csv", "a,b\n\n1,x\n\n2,y\n\n"), ("t.csv", "a,b\r1,x\r2,y\r"),
    ],
)  # fmt: skip
def test_csv_of_every_kind_is_the_same_table(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    source = open_source(tmp_path / name)
    assert source.columns == ["a", "b"]
    assert source.read().equals(TABLE)
    assert pa.Table.from_batches(source.batches(["b"])).equals(TABLE.select(["b"]))
    assert source.read(["b", "a", "b"]).column_names == ["b", "a"]


@pytest.mark.parametrize(("name", "pack"), [("t.csv.gz", gzip.compress), ("t.csv.bz2", bz2.compress)])
def test_packed_csv_is_read(name: str, pack: object, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pack(b"a,b\n1,x\n2,y\n"))  # type: ignore[operator]
    assert open_source(tmp_path / name).read().equals(TABLE)


def test_a_packed_csv_with_a_bad_row_and_a_broken_end_is_refused(tmp_path: Path) -> None:
    """The row is found in the first block; the end breaks only when the whole file is searched for the reason."""
    packed = gzip.compress(b"a,b\n1,2,3\n" + b"1,2\n" * 5_000_000, 1)
    (tmp_path / "t.csv.gz").write_bytes(packed[:-100])
    with pytest.raises(InputError, match=r"Expected 2 values per row, but 1 row \(row 1\) has 3"):
        open_source(tmp_path / "t.csv.gz")


def test_parquet_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "data.bin")
    source = open_source(tmp_path / "data.bin")
    assert source.is_parquet
    assert source.read().equals(TABLE)
    assert pa.Table.from_batches(source.batches(["a"])).equals(TABLE.select(["a"]))


def test_a_parquet_file_in_a_folder_with_an_equals_sign_gets_no_column(tmp_path: Path) -> None:
    (tmp_path / "year=2020").mkdir()
    pq.write_table(TABLE, tmp_path / "year=2020" / "t.parquet")
    assert open_source(tmp_path / "year=2020" / "t.parquet").read().column_names == ["a", "b"]


class SpeaksArrow:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


def test_tables_in_memory_are_taken() -> None:
    for data in (TABLE, TABLE.to_batches()[0], TABLE.to_pandas(), SpeaksArrow()):
        assert open_source(data).read().to_pydict() == TABLE.to_pydict()
    source = open_source(TABLE)
    assert open_source(source) is source
    indexed = TABLE.to_pandas().set_index(pd.Index([5, 6], name="i"))
    assert open_source(indexed).columns == ["a", "b"]


@pytest.mark.parametrize("text", ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "None"])
def test_missing_values_of_csv_are_null_unless_all_is_wanted_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,b\n1,{text}\n{text},x\n")
    source = open_source(tmp_path / "t.csv")
    assert source.read().to_pydict() == {"a": ["1", None], "b": [None, "x"]}
    assert source.read(as_is=True).to_pydict() == {"a": ["1", text], "b": [text, "x"]}


@pytest.mark.parametrize("data", [5, None, [1], {"a": [1]}])
def test_what_is_no_table_is_refused(data: object) -> None:
    with pytest.raises(InputError, match="Expected a path, an Arrow table or a data frame"):
        open_source(data)


def test_empty_tables_are_refused() -> None:
    for data in (TABLE.slice(0, 0), pd.DataFrame(), pa.table({})):
        with pytest.raises(InputError, match="no rows"):
            open_source(data)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this is a folder"):
        open_source(tmp_path)


def test_names_that_stand_twice_are_refused(tmp_path: Path) -> None:
    twice = pa.table([["1"], ["2"], ["3"]], names=["a", "a", "b"])
    pq.write_table(twice, tmp_path / "t.parquet")
    (tmp_path / "t.csv").write_text("a,a,b\n1,2,3\n")
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"])
    for data in (twice, tmp_path / "t.parquet", tmp_path / "t.csv", frame):
        with pytest.raises(InputError, match="repeat"):
            open_source(data)


def test_a_frame_that_mixes_types_is_refused_without_its_values() -> None:
    with pytest.raises(InputError, match="mixes types") as refused:
        open_source(pd.DataFrame({"a": [1, "secret", b"x"]}))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n3\n", r"Expected 2 values per row, but 1 row \(row 2\) has 1"),
        ("a,b\n1,2\n3,4\n5,6,7\n8\n", r"1 row \(row 3\) has 3"),
        ('a,b\n1,2\n3,"4\n5,6\n7,8\n', "a quote is opened and never closed"),
        ('a,b\n1,2\n"3,4\n5,6\n', "quote"),
        ('a,b\n1,"x\ny"\n3,"4\n5,6\n', "quote"),
    ],
)
def test_broken_rows_are_named(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    for columns in (["a"], ["b"], ["a", "b"]):
        with pytest.raises(InputError, match=says):
            open_source(tmp_path / "t.csv").read(columns)


def test_quotes_that_are_closed_are_fine(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,"x, ""y"""\n2,"line\nbreak"\n')
    assert open_source(tmp_path / "t.csv").read().to_pydict() == {"a": ["1", "2"], "b": ['x, "y"', "line\nbreak"]}


def test_a_bad_row_in_a_later_block_is_named(tmp_path: Path) -> None:
    lines = [f"{i},some text that is long enough to fill blocks {i}" for i in range(200_000)]
    lines[180_000] += ",one more"
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    assert (tmp_path / "t.csv").stat().st_size > 8 << 20
    with pytest.raises(InputError, match=r"1 row \(row 180,001\) has 3"):
        open_source(tmp_path / "t.csv").read(["a"])


def test_a_source_of_a_table_has_no_path() -> None:
    assert not Source("t", TABLE.schema, table=TABLE).is_parquet


def _spoilt(path: Path, table: pa.Table, text: bytes) -> Path:
    """A Parquet file in which a text is replaced by one that is no UTF-8."""
    pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False, store_schema=False)
    content = path.read_bytes()
    assert text in content
    path.write_bytes(content.replace(text, b"\xff" * len(text)))
    return path


def test_text_in_parquet_that_is_no_text_is_reported(tmp_path: Path) -> None:
    table = pa.table({"abcdefgh": ["first value", "second value"]})
    with pytest.raises(InputError, match=r"the text is not UTF-8. Save the file in that encoding\.$"):
        open_source(_spoilt(tmp_path / "names.parquet", table, b"abcdefgh"))
    source = open_source(_spoilt(tmp_path / "values.parquet", table, b"second"))
    with pytest.raises(InputError, match="the text is not UTF-8"):
        source.read()
    for ids in ([], ["abcdefgh"]):
        with pytest.raises(InputError, match="the text is not UTF-8"):
            list(source.batches(["abcdefgh"], ids))


def test_a_row_of_csv_that_is_too_long_and_no_text_is_reported_without_a_word_from_below(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,x\n2,\x80,z\n")
    with pytest.raises(InputError, match="the text is not UTF-8"):
        open_source(tmp_path / "t.csv").read()
    assert capfd.readouterr().err == ""
