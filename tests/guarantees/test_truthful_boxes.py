"""Truthful boxes: the checkers go red where a box lies beside its points, or distinguishes a trajectory from its class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import TrajectoryKAnonymity, TruthfulBoxes, WellFormedTrajectories, guarantee_from_manifest
from crowdveil.io.release_reader import load_trajectory_release
from crowdveil.io.release_writer import trajectory_table, write_release
from crowdveil.io.written_release import WrittenRelease, read_release
from crowdveil.model.canonical import numbered
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import no_progress
from crowdveil.registry import find_method
from crowdveil.run import pipeline

METHODS = {
    "microaggregation": {"aggregation": "box"},
    "time-partitioned-microaggregation": {"aggregation": "box", "suppress": 0.1},
    "segment-microaggregation": {"aggregation": "box", "segment_s": 60},
    "frechet-microaggregation": {"aggregation": "box"},
    "log-cost-generalization": {"reconstruction": "box"},
}


@pytest.fixture(scope="module")
def data() -> Trajectories:
    """Thirty trajectories of 15 people, of one to six points each."""
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 7, 30)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lon, lat = (middle + np.round(rng.normal(0, 0.02, offsets[-1]), 6) for middle in (2.35, 48.85))
    start = np.repeat(rng.integers(0, 600, 30), lengths)
    t = start + 50 * (np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths))
    people = np.array([f"p{i}" for i in range(15)], dtype=object)
    return Trajectories(lon, lat, t, offsets, np.arange(30), np.arange(30) % 15, people, "people")


def _release(data: Trajectories, name: str = "microaggregation", k: int = 3) -> TrajectoryRelease:
    method = find_method(name)
    made = method.run(data, method.params.checked({"k": k} | METHODS[name]), np.random.default_rng(1), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return numbered(made)


def _written(release: TrajectoryRelease) -> WrittenRelease:
    return WrittenRelease(Path("out"), trajectory_table(release, "parquet"), None, [])


@pytest.mark.parametrize("name", METHODS)
def test_boxes_of_every_grouping_method_hold(name: str, data: Trajectories) -> None:
    release = _release(data, name)
    written = _written(release)
    params = find_method(name).params.checked({"k": 3} | METHODS[name])
    stated = find_method(name).guarantees(data, params)
    assert any(isinstance(guarantee, TruthfulBoxes) for guarantee in stated)
    for guarantee in (*stated, WellFormedTrajectories()):
        assert guarantee.check_with_trajectories(written, data, release.source).holds, guarantee.name
        assert guarantee_from_manifest({"name": guarantee.name, "parameters": guarantee.model_dump()}) == guarantee


@pytest.mark.parametrize("table_format", ["csv", "parquet"])
def test_boxes_are_read_as_they_were_written(table_format: str, data: Trajectories, tmp_path: Path) -> None:
    release = _release(data)
    files = write_release(release, tmp_path, table_format)  # type: ignore[arg-type]
    back = load_trajectory_release(read_release(tmp_path, files))
    assert release.boxes is not None and back.boxes is not None
    assert all(np.array_equal(a, b) for a, b in zip(release.boxes, back.boxes, strict=True))
    assert len(back.shapes()) == back.points and back.shapes()[0].geom_type == "Polygon"


def _moved(release: TrajectoryRelease, side: str, by: float, row: int | slice = slice(None)) -> TrajectoryRelease:
    assert release.boxes is not None
    values = getattr(release.boxes, side).copy()
    values[row] += by
    return replace(release, boxes=release.boxes._replace(**{side: values}))


@pytest.mark.parametrize(("side", "by"), [("lon_max", -0.0001), ("lat_min", 0.0001), ("t_max", -1), ("t_min", 1)])
def test_a_box_that_is_too_small_is_found_with_the_original(side: str, by: float, data: Trajectories) -> None:
    release = _release(data)
    found = TruthfulBoxes().check_with_trajectories(_written(_moved(release, side, by)), data, release.source)
    assert found.violated and "points are outside" in found.detail
    assert TruthfulBoxes().check(_written(release)).outcome == "not checked"
    assert TruthfulBoxes().check_with_trajectories(_written(release), data, None).outcome == "not checked"


def test_boxes_of_others_and_boxes_without_points_are_found(data: Trajectories) -> None:
    release = _release(data)
    assert release.source is not None
    exchanged = np.roll(release.source, 7)
    assert TruthfulBoxes().check_with_trajectories(_written(release), data, exchanged).violated
    fewer = TruthfulBoxes().check_with_trajectories(_written(release), data, release.source[1:])
    assert fewer.violated and "another number" in fewer.detail
    points = TruthfulBoxes().check(_written(replace(release, boxes=None)))
    assert points.violated and points.detail == "the files have no boxes."


def test_a_wider_box_distinguishes_a_trajectory_from_its_class(data: Trajectories) -> None:
    """An adversary who finds one box unlike those of its class has found one person; its center is the same."""
    release, goal = _release(data), TrajectoryKAnonymity(k=3, k_unit="people")
    assert goal.check_with_trajectories(_written(release), data, release.source).holds
    wider = _moved(_moved(release, "lat_max", 0.001, 0), "lat_min", -0.001, 0)
    assert goal.check_with_trajectories(_written(wider), data, release.source).violated
    assert np.array_equal(wider.lat, release.lat)
    assert not np.array_equal(numbered(wider).boxes.lat_max, numbered(release).boxes.lat_max)  # type: ignore[union-attr]


def test_the_file_has_all_bounds_in_order(data: Trajectories) -> None:
    release, form = _release(data), WellFormedTrajectories()
    for side, by in (("lat_min", 1.0), ("t_min", 10_000), ("lon_min", 1.0)):
        found = form.check(_written(_moved(release, side, by, 0)))
        assert found.violated and "bounds of a box" in found.detail, side
    table = trajectory_table(release, "parquet").drop_columns(["lat_max"])
    assert form.check(WrittenRelease(Path("out"), table, None, [])).violated


def test_a_run_that_publishes_a_smaller_box_writes_nothing(
    data: Trajectories, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crowdveil.solve.trajectory import aggregation

    monkeypatch.setattr(aggregation, "_down", lambda degrees: np.round(degrees + 0.001, 3))
    request = pipeline.Request("microaggregation", data, tmp_path / "out", {"k": 3, "aggregation": "box"})
    with pytest.raises(GuaranteeViolatedError, match=r"truthful-boxes|well-formed"):
        pipeline.run(request)
    assert not (tmp_path / "out").exists()
