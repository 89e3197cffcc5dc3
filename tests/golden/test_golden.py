"""Releases stay as they were, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from releases import DIGESTS, cases, make, write_data

KEPT = json.loads(DIGESTS.read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs of all releases."""
    folder = tmp_path_factory.mktemp("golden")
    write_data(folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", cases())
def test_a_release_has_the_rows_that_it_had(name: str, data: Path, tmp_path: Path) -> None:
    assert make(cases()[name], data, tmp_path / "out") == KEPT[name]
