"""Coordinate systems that data name: the spellings that libraries write, and nothing that opens another file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyproj import CRS

from crowdveil.errors import InputError
from crowdveil.io.crs import parse_crs

LAMBERT = CRS.from_epsg(2154)
BOUND = {"type": "BoundCRS", "source_crs": LAMBERT.to_json_dict()}


@pytest.mark.parametrize(
    "given",
    ["EPSG:2154", "urn:ogc:def:crs:EPSG::2154", LAMBERT.to_wkt(), LAMBERT.to_json_dict(), LAMBERT.to_json(), LAMBERT],
    ids=["code", "urn", "wkt", "projjson", "projjson as text", "object"],
)
def test_the_usual_spellings_are_read(given: Any) -> None:
    assert parse_crs(given, "zones") == LAMBERT


@pytest.mark.parametrize(
    "given",
    [
        "+proj=longlat +nadgrids=secret.gsb", "+init=epsg:4326", "secret.wkt", 2154, None, "", "{",
        '{"a": 1}', "{}" * 99_999, "[" * 9_999,
        '{"a":' * 9_999, BOUND, json.dumps(BOUND),
    ],
)  # fmt: skip
def test_what_may_name_a_file_is_refused_however_it_is_spelled(given: Any) -> None:
    with pytest.raises(InputError, match="unknown coordinate system") as refused:
        parse_crs(given, "zones")
    assert "secret" not in str(refused.value)
