"""The notebooks run from top to bottom on the synthetic city, and the first also on New York's taxis."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs" / "notebooks").glob("*.ipynb"))


def run(notebook: Path, folder: Path) -> str:
    """What the code cells print when they are run in a folder, one after the other."""
    cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {"__name__": "notebook"}
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        for number, cell in enumerate(cells):
            exec(compile("".join(cell["source"]), f"{notebook.name}[{number}]", "exec"), names)
    return out.getvalue()


@pytest.fixture(autouse=True)
def _without_display(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pytest.importorskip("geopandas")
    pytest.importorskip("matplotlib")


def test_there_are_three() -> None:
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, tmp_path: Path) -> None:
    assert run(notebook, tmp_path)


@pytest.mark.slow
@pytest.mark.realdata
def test_the_taxi_notebook_runs_on_real_trips(realdata: Path, tmp_path: Path) -> None:
    (tmp_path / "nyc_taxi").symlink_to(realdata / "nyc_taxi")
    (taxis,) = (path for path in NOTEBOOKS if path.stem == "nyc-taxi")
    said = run(taxis, tmp_path)
    assert "263 zones" in said and "trips published" in said
