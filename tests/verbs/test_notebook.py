"""Python in a notebook: frames of any library in, short and shown results out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import crowdveil
from crowdveil.errors import CrowdveilWarning, InputError, ParameterError, as_command_line, render

pd = pytest.importorskip("pandas")
gpd = pytest.importorskip("geopandas")


def make_trips() -> pa.Table:
    """Return 400 trips of 80 people between four squares, on two days."""
    rng = np.random.default_rng(5)
    n = 400
    return pa.table(
        {
            "origin": [str(i) for i in rng.integers(0, 4, n)],
            "destination": [str(i) for i in rng.integers(0, 4, n)],
            "time": [f"2024-01-0{1 + i} 08:00:00" for i in rng.integers(0, 2, n)],
            "user": [f"u{i}" for i in rng.integers(0, 80, n)],
        }
    )


def make_zones() -> Any:
    """Return four squares."""
    import shapely

    squares = [shapely.box(x / 100, y / 100, (x + 1) / 100, (y + 1) / 100) for x in range(2) for y in range(2)]
    return gpd.GeoDataFrame({"zone_id": [str(i) for i in range(4)]}, geometry=squares, crs="EPSG:4326")


@pytest.fixture(scope="module")
def result() -> Any:
    """Return a release in memory."""
    return crowdveil.anonymize(
        make_trips(), method="suppression", zones=make_zones(), k=5, step="1d", tz="Europe/Paris"
    )


def as_kind(kind: str, table: pa.Table, folder: Path) -> Any:
    """Return a table as a frame of a library, or as a file."""
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        return pytest.importorskip("polars").from_arrow(table)
    path = folder / "table.csv"
    table.to_pandas().to_csv(path, index=False)
    return path


KINDS = ("arrow", "pandas", "polars", "path")


@pytest.mark.parametrize("kind", KINDS)
def test_any_frame_of_trips_gives_the_same_release(kind: str, result: Any, tmp_path: Path) -> None:
    data = as_kind(kind, make_trips(), tmp_path)
    options: dict[str, Any] = {"zones": make_zones(), "k": 5, "step": "1d", "tz": "Europe/Paris"}
    made = crowdveil.anonymize(data, tmp_path / "out", method="suppression", format="parquet", **options)
    assert made.flows.to_arrow().equals(result.flows.to_arrow())
    assert all(finding.holds for _, finding in crowdveil.verify(made, data, zones=make_zones()))
    assert len(crowdveil.read_flows(data, **{n: v for n, v in options.items() if n != "k"})) > 0
    assert crowdveil.measure(data, made, ["E"], zones=make_zones())["E"].pooled >= 0
    assert len(crowdveil.compare(data, ["suppression"], k=5, zones=make_zones(), step="1d").to_pandas()) == 6


@pytest.mark.parametrize("kind", ["geopandas", "path"])
def test_zones_are_a_geodataframe_or_a_file(kind: str, result: Any, tmp_path: Path) -> None:
    zones = make_zones()
    if kind == "path":
        zones.to_file(tmp_path / "zones.geojson", driver="GeoJSON")
    given = zones if kind == "geopandas" else tmp_path / "zones.geojson"
    made = crowdveil.anonymize(make_trips(), method="joint", zones=given, k=5, step="1d")
    assert len(made.areas.to_geopandas()) == len(made.areas)
    assert len(crowdveil.read_zones(given)) == 4
    written = result.save(tmp_path / "out")
    assert crowdveil.reconstruct(written, to_zones=given).table().num_rows > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_is_a_frame_or_a_file_and_names_the_areas(kind: str, tmp_path: Path) -> None:
    ids = sorted(str(zone) for zone in crowdveil.read_zones(make_zones()).ids)
    levels = pa.table({"tile": ids, "district": ["north", "north", "south", "south"]})
    tree = as_kind(kind, levels, tmp_path)
    made = crowdveil.anonymize(
        make_trips(), method="joint", zones=make_zones(), hierarchy=tree, k=30, step="1d", report=False
    )
    assert {"origin_name", "destination_name"} <= set(made.flows.columns)
    areas = made.areas.to_pandas()
    assert set(areas[areas["size"] == 2]["name"]) <= {"north", "south"}


def test_a_result_is_short_and_has_tables(result: Any) -> None:
    assert len(repr(result)) < 300 and "guarantees can be checked" in repr(result)
    flows, areas, steps = result.flows, result.areas, result.steps
    assert list(flows.to_pandas().columns) == flows.columns == flows.to_arrow().column_names
    assert areas.to_geopandas().geometry.is_valid.all() and areas.to_geopandas().crs.to_epsg() == 4326
    assert len(steps) == 2
    with pytest.raises(InputError, match="holds flows"):
        _ = result.trajectories
    with pytest.raises(TypeError, match="no geometry"):
        flows.to_geopandas()


def test_a_notebook_shows_guarantees_loss_and_a_map(result: Any) -> None:
    html = result._repr_html_()
    assert "k = 5 people" in html and "holds" in html and "<svg" in html and "and " in html
    assert "<script" not in html
    assert "srcdoc" in result.report()._repr_html_()


def test_pictures_and_the_report_are_saved(result: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for picture in (result.plot.flows(), result.plot.coarsening(), result.plot.profiles()):
        assert picture.save(tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert result.report().save(tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_a_release_in_memory_is_saved_with_the_same_bytes(result: Any, tmp_path: Path) -> None:
    assert result.folder is None and "in memory" in repr(result)
    saved = result.save(tmp_path / "out")
    assert {f.name: f.read_bytes() for f in (tmp_path / "out").iterdir()} == result.files
    assert all(finding.holds for _, finding in saved.verify(make_trips(), zones=make_zones()))
    crowdveil.plot("flows", result, tmp_path / "flows.png")
    with pytest.raises(InputError, match="in memory"):
        crowdveil.write_report(result)


def test_a_result_answers_short_questions(result: Any) -> None:
    pd = pytest.importorskip("pandas")
    assert result.k == 5 and result.summary().startswith("holds ") and "suppressed" in result.summary()
    flows = result.flows
    frame = pd.DataFrame(flows)
    assert list(frame.columns) == flows.columns and len(frame) == len(flows) == frame.shape[0]
    assert flows["volume"].sum() == frame["volume"].sum() and len(flows.head(1)) == 1
    assert flows[["volume"]].columns == ["volume"] and len(result.areas.head(2).to_geopandas()) == 2
    checked = result.verify()
    assert checked.ok and len(checked) == len(checked.to_pandas()) and "checked" in repr(checked)
    assert {guarantee.name for guarantee, _ in checked} == set(checked.to_pandas()["guarantee"])


def test_a_picture_is_drawn_on_given_axes(result: Any) -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    assert result.plot(ax=axes).content == result.plot.flows().content and len(axes.images) == 1


@pytest.mark.parametrize(
    ("name", "near"), [("supress", "suppress"), ("hierachy", "hierarchy"), ("owerwrite", "overwrite")]
)
def test_a_misspelled_option_gets_a_suggestion(name: str, near: str) -> None:
    with pytest.raises(ParameterError, match=f"{name}: there is no such parameter. Did you mean {near}\\?"):
        crowdveil.anonymize(make_trips(), zones=make_zones(), **{name: "x"})


def test_notes_are_warnings_that_name_arguments() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", CrowdveilWarning)
        crowdveil.anonymize(make_trips(), method="suppression", zones=make_zones(), k=5, step="1d")
    texts = [str(w.message) for w in seen if w.category is CrowdveilWarning]
    assert any("tz=" in text for text in texts) and not any("--" in text for text in texts)
    assert {Path(w.filename).name for w in seen if w.category is CrowdveilWarning} == {Path(__file__).name}


def test_models_are_short_and_give_frames(tmp_path: Path) -> None:
    flows = crowdveil.read_flows(make_trips(), zones=make_zones(), step="1d")
    tree = crowdveil.build_hierarchy(flows.zones, "ward")
    for model in (flows, flows.zones, tree):
        assert len(repr(model)) < 200 and "<table>" in model._repr_html_()
        assert len(model.to_pandas()) == len(model)
    assert set(flows.zones.to_geopandas().geometry.geom_type) == {"Polygon"}
    crowdveil.write_flows(flows, tmp_path / "flows.parquet")
    assert pa.parquet.read_table(tmp_path / "flows.parquet").equals(flows.to_arrow())
    assert pytest.importorskip("polars").DataFrame(flows).height == len(flows)


def test_trajectories_are_short_and_give_points() -> None:
    points = pa.table(
        {
            "lat": [0.0, 0.1, 0.0, 0.1],
            "lon": [0.0, 0.1, 0.2, 0.1],
            "timestamp": [0, 60, 0, 60],
            "trajectory_id": [1, 1, 2, 2],
        }
    )
    data = crowdveil.read_trajectories(points)
    made = crowdveil.anonymize(points, method="microaggregation", k=2)
    for shown in (data, made.trajectories, made.release):
        assert len(repr(shown)) < 200 and len(shown.to_geopandas()) == 4


def test_methods_are_a_table() -> None:
    table = crowdveil.list_methods()
    assert table.to_pandas().set_index("name").loc["joint", "parameters"].startswith("k, ")


def test_a_release_on_spark_needs_a_folder() -> None:
    with pytest.raises(ParameterError, match="Expected a folder on Spark"):
        crowdveil.anonymize("trips.parquet", method="suppression", k=5, engine="spark")


def test_trips_pipe_into_a_release(tmp_path: Path) -> None:
    frame = make_trips().to_pandas()
    made = frame.pipe(crowdveil.read_flows, zones=make_zones(), step="1d")
    assert made.total == len(frame)


def test_trips_descriptions_and_heat_maps_are_short_and_shown() -> None:
    trips = crowdveil.read_trips(make_trips(), zones=make_zones())
    about = crowdveil.describe(make_trips(), [5], zones=make_zones(), step="1d", suggest=True)
    side = pa.array([0.0005 * (i % 5) for i in range(60)])
    cabs = pa.table(
        {"lat": side, "lon": side, "timestamp": list(range(60)), "trajectory_id": [i // 5 for i in range(60)]}
    )
    heat = crowdveil.quadtree_heatmap(cabs, min_k=2)
    for shown in (trips, about, heat):
        assert len(repr(shown)) < 200 and len(shown.to_pandas()) > 0
        assert "--" not in shown._repr_html_() and len(shown._repr_html_()) < 5000
    assert trips.to_pandas()["origin"].tolist() == make_trips()["origin"].to_pylist()
    assert set(heat.to_geopandas().geom_type) == {"Polygon"}


def test_reasons_name_arguments_in_python_and_options_on_the_command_line(result: Any) -> None:
    found = crowdveil.compare(make_trips(), ["suppression", "uniform"], k=5, zones=make_zones(), step="1d")
    (reason,) = found.left_out.values()
    assert "zones=" in str(reason) and "--" not in str(reason)
    assert "--zones" in render(reason, as_command_line)
