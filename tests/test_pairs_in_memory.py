"""Whose each published trajectory is, where trajectories and their release are models in memory: paired right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.engine.progress import no_progress
from crowdveil.errors import InputError
from crowdveil.model.canonical import canonical, digest
from crowdveil.model.release import TrajectoryRelease, has_segments
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import all_methods, find_method
from crowdveil.run import pipeline

METHODS = [name for name, method in all_methods().items() if method.takes is Trajectories]
PEOPLE, EACH, POINTS = 30, 2, 4


def _data() -> Trajectories:
    """Trajectories of unlike content in an order that is not the canonical one."""
    rng, n = np.random.default_rng(3), PEOPLE * EACH
    t = np.sort(rng.integers(0, 600, (n, POINTS)), axis=1) + 1_700_000_000
    lon, lat = 2 + rng.random((n, POINTS)) * 0.01, 48 + rng.random((n, POINTS)) * 0.006
    names = np.array([f"p{i}" for i in range(PEOPLE)], dtype=object)
    offsets = np.arange(0, n * POINTS + 1, POINTS)
    person = np.tile(np.arange(PEOPLE), EACH)
    return Trajectories(lon.ravel(), lat.ravel(), t.ravel(), offsets, np.arange(n), person, names)


def _run(name: str, data: Trajectories) -> TrajectoryRelease:
    method = find_method(name)
    params = method.params.checked({"k": 2} if "k" in method.params.model_fields else {})
    release = method.run(data, params, np.random.default_rng(1), no_progress)
    assert isinstance(release, TrajectoryRelease)
    return release


def _itself(data: Trajectories) -> TrajectoryRelease:
    """The data as its own release, by a method: every trajectory is found again where it is paired right."""
    same = TrajectoryRelease(data.lon, data.lat, data.t, data.offsets, source=np.arange(len(data)))
    method = replace(find_method("swapmob"), run=lambda *_: same)
    made = method.run(data, method.params(), np.random.default_rng(0), no_progress)
    assert isinstance(made, TrajectoryRelease)
    return made


def _error(data: Any, release: Any) -> float:
    return float(crowdveil.measure(data, release, ["rmse"])["rmse"].mean)


def _found(data: Any, release: Any) -> float:
    return float(crowdveil.attack("location", data, release, knowledge=2)["location"][1].average.value)


def test_trajectories_in_any_order_are_paired_with_themselves() -> None:
    data = _data()
    assert canonical(data).ids.tolist() != data.ids.tolist()
    for given in (data, canonical(data)):
        assert _error(given, _itself(given)) == 0 and _found(given, _itself(given)) == 1


@pytest.mark.parametrize("name", METHODS)
def test_a_run_of_the_method_alone_is_paired_as_the_pipeline_pairs_it(name: str) -> None:
    """The same release twice: `source` names places of the data as it is, then those of the canonical order."""
    data = _data()
    order = [canonical(data).ids.tolist().index(i) for i in data.ids.tolist()]
    alone = _run(name, data)
    assert alone.source is not None
    by_reading = replace(alone, source=np.array(order)[alone.source], original=digest(canonical(data)))
    assert _found(data, alone) == _found(data, by_reading)
    if has_segments(alone):  # a segment has no distance from a whole trajectory: measures of distances refuse it
        for release in (alone, by_reading):
            with pytest.raises(InputError, match="several segments of one trajectory, which have no distance from it"):
                _error(data, release)
        return
    assert _error(data, alone) == _error(data, by_reading) == _error(canonical(data), by_reading)


def test_the_release_of_a_run_is_paired_with_the_model_and_with_the_file(tmp_path: Path) -> None:
    data = _data()
    whose = data.people_ids[data.person].tolist()
    rows = [
        f"{lat!r},{lon!r},{t},{i},{whose[i]}"
        for i in range(len(data))
        for lat, lon, t in zip(
            *(c[i * POINTS : (i + 1) * POINTS].tolist() for c in (data.lat, data.lon, data.t)), strict=True
        )
    ]
    (tmp_path / "data.csv").write_text("\n".join(["lat,lon,timestamp,trajectory_id,user_id", *rows]) + "\n")
    request = pipeline.Request("swapmob", data, tmp_path / "out", {}, options={"seed": 1, "report": False})
    release = pipeline.run(request).release
    file = tmp_path / "data.csv"
    assert _error(data, release) == _error(canonical(data), release) == _error(file, release)


@pytest.mark.parametrize("ask", [_error, _found])
def test_a_release_of_other_trajectories_or_of_another_order_is_refused(ask: Callable[[Any, Any], float]) -> None:
    data = _data()
    other = replace(data, lon=data.lon + 0.001)
    for given, release in ((canonical(data), _itself(data)), (data, _itself(other))):
        with pytest.raises(InputError, match="Give the trajectories that it was made from"):
            ask(given, release)
