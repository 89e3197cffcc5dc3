"""CSV files with text that a spreadsheet would run."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import crowdveil
from crowdveil.io.tables import escape_formulas, open_table_writer, unescape_formulas, write_table

ODD = st.text(st.sampled_from("'=+-@\t\r\n5.ea ,\""), max_size=6)
FORMULAS = ("=1+1", "+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "'=1", '=HYPERLINK("http://x")')


def is_formula(text: str) -> bool:
    """As a spreadsheet sees it: it begins with a sign, and is no number."""
    try:
        float(text)
    except ValueError:
        return text[:1] in tuple("=+-@\t\r\n")
    return False


@given(st.lists(st.one_of(ODD, st.none())))
def test_nothing_is_a_formula_and_all_comes_back(texts: list[str | None]) -> None:
    table = pa.table({"name": pa.array(texts, pa.string()), "n": range(len(texts))})
    written = escape_formulas(table)
    assert not any(is_formula(text) for text in written["name"].to_pylist() if text is not None)
    assert unescape_formulas(written).equals(table)


def test_numbers_and_plain_names_are_left_alone() -> None:
    table = pa.table({"name": ["-5", "+0.5", "-1e-3", "tile 1", "'t Harde", ""], "x": [-1.0, 2.0, -3.0, 0.0, 0.0, 0.0]})
    assert escape_formulas(table).equals(table) and unescape_formulas(table).equals(table)


@pytest.mark.parametrize("way", ["table", "growing"])
def test_tables_for_people(tmp_path: Path, way: str) -> None:
    table, path = pa.table({"zone": list(FORMULAS), "trips": range(len(FORMULAS))}), tmp_path / "t.csv"
    if way == "table":
        write_table(table, path)
    else:
        with open_table_writer(path, table.schema, {}, list(FORMULAS)) as write:  # type: ignore[arg-type]
            write(table)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["zone"] for row in rows] == ["'" + text for text in FORMULAS]
    write_table(table, tmp_path / "again.csv", as_input=True)
    with (tmp_path / "again.csv").open(newline="", encoding="utf-8") as file:
        assert [row["zone"] for row in csv.DictReader(file)] == list(FORMULAS)


def test_a_release_with_such_names_is_verified(tmp_path: Path) -> None:
    names = ["=1+1", "@home", "-a", "plain"]
    features = []
    for i, name in enumerate(names):
        ring = [[i, 0], [i + 1, 0], [i + 1, 1], [i, 1], [i, 0]]
        shape = {"type": "Polygon", "coordinates": [ring]}
        features.append({"type": "Feature", "properties": {"id": name}, "geometry": shape})
    (tmp_path / "z.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    rows = [f"{a},{b},u{i}\n" for a in names for b in names for i in range(12)]
    (tmp_path / "t.csv").write_text("origin,destination,user\n" + "".join(rows))
    out = tmp_path / "out"
    crowdveil.anonymize(tmp_path / "t.csv", out, method="joint", zones=tmp_path / "z.geojson", k=5, format="csv")
    with (out / "flows.csv").open(newline="", encoding="utf-8") as file:
        listed = {row["origin_area"] for row in csv.DictReader(file)}
    assert listed and not any(is_formula(name) for name in listed) and any(name.startswith("'=") for name in listed)
    crowdveil.verify(out)
