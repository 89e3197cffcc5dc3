"""Columns of numbers and of ids."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.io.values import encode_ids, ids_of, read_floats

unhurried = settings(deadline=None, max_examples=tries(100))


def plain_number(text: str | None) -> float | None:
    """What a person would take for a number: digits, a point, a sign, an exponent, with spaces around."""
    if text is None or not set(text.strip()) <= set("0123456789+-.eE"):
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


ODD = ["", " 5 ", "+7", "1e3", ".5", "5.", "1e999", "-1e999", "1_0", "0x10", "x", "1,5", "--1", "٣", "1e", "NaN", "inf"]


@unhurried
@given(st.lists(st.none() | st.floats().map(repr) | st.sampled_from(ODD), min_size=1, max_size=12))
def test_numbers_in_text_are_read_as_python_reads_them(texts: list[str | None]) -> None:
    values, bad = read_floats(pa.array(texts, pa.string()), "here")
    wanted = [plain_number(t) for t in texts]
    assert (np.zeros(len(texts), bool) if bad is None else bad).tolist() == [w is None for w in wanted]
    assert values.tolist() == [0.0 if w is None else w for w in wanted]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 1)]
)
def test_numbers_of_every_type(kind: pa.DataType) -> None:
    numbers = [1, None, 3] if not pa.types.is_decimal(kind) else [Decimal("1.0"), None, Decimal("3.0")]
    array = (
        pa.array(np.array([1, 0, 3], np.float16), mask=np.array([0, 1, 0], bool))
        if kind == pa.float16()
        else pa.array(numbers, kind)
    )
    values, bad = read_floats(pa.chunked_array([array, array.slice(0, 0)]), "here")
    assert values.tolist() == [1.0, 0.0, 3.0]
    assert bad is not None
    assert bad.tolist() == [False, True, False]


def test_numbers_whose_sum_is_not_finite_may_all_be_good() -> None:
    assert read_floats(pa.array([1e308, 1e308]), "here")[1] is None
    bad = read_floats(pa.array([float("inf"), float("-inf"), 1.0]), "here")[1]
    assert bad is not None
    assert bad.tolist() == [True, True, False]
    assert read_floats(pa.array([], pa.float64()), "here")[1] is None


@pytest.mark.parametrize(
    "column", [pa.array([True]), pa.array([[1.0]]), pa.nulls(2), pa.array([b"1"]), pa.array([1], pa.date32())]
)
def test_columns_that_are_no_numbers_are_refused(column: pa.Array) -> None:
    with pytest.raises(InputError, match="here: Expected numbers"):
        read_floats(column, "here")


@unhurried
@given(
    st.lists(st.none() | st.text(max_size=3), max_size=20)
    | st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20)
)
def test_codes_number_ids_in_order_of_appearance(ids: list[str | int | None]) -> None:
    kind = pa.string() if any(isinstance(i, str) for i in ids) else pa.int64()
    code, labels, missing = encode_ids(pa.array(ids, kind))
    assert labels.tolist() == list(dict.fromkeys(i for i in ids if i is not None))
    gone = np.zeros(len(ids), bool) if missing is None else missing
    assert [None if m else labels[c] for c, m in zip(code, gone, strict=True)] == ids


def test_ids_stored_as_floats_are_whole_numbers_where_they_can_be() -> None:
    assert ids_of(pa.array([12.0, None, float("nan")]), "here").to_pylist() == [12, None, None]
    assert ids_of(pa.array([12.5, None, float("nan")]), "here").to_pylist() == ["12.5", None, None]
    assert encode_ids(pa.array([2**64 - 1, 0], pa.uint64()))[1].tolist() == [str(2**64 - 1), "0"]


@pytest.mark.parametrize("column", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([b"\xff"])])
def test_ids_of_other_types_are_refused(column: pa.Array) -> None:
    with pytest.raises(InputError, match="here: Expected ids, but the column holds"):
        encode_ids(column, "here")
