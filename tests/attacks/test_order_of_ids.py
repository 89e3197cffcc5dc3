"""An attacker who has the files of a release alone, and tries to put it back into the order of the input."""

from __future__ import annotations

import csv
import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import slow_param

from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import all_methods
from crowdveil.run import pipeline

PEOPLE, EACH, POINTS = 40, 5, 6
SEEDS = range(1001)
METHODS = {name: method for name, method in all_methods().items() if method.takes is Trajectories}


def _data() -> Trajectories:
    """People who each have several trajectories, one after the other in the input, in a small place where all meet."""
    rng, n = np.random.default_rng(8), PEOPLE * EACH
    t = np.sort(rng.integers(0, 900, (n, POINTS)), axis=1) + 1_700_000_000
    lon, lat = 2 + rng.random((n, POINTS)) * 0.01, 48 + rng.random((n, POINTS)) * 0.006
    person = np.repeat(np.arange(PEOPLE), EACH)
    names = np.array([f"p{i:03}" for i in range(PEOPLE)], dtype=object)
    offsets = np.arange(0, n * POINTS + 1, POINTS)
    return Trajectories(lon.ravel(), lat.ravel(), t.ravel(), offsets, np.arange(1, n + 1), person, names)


def _published(folder: Path, name: str, seed: int | None, **more: Any) -> np.ndarray:
    """The original trajectory behind each published id, which only the owner of the data knows."""
    method = METHODS[name]
    parameters = {"k": 3, **more} if "k" in method.params.model_fields else more
    data = _data()
    result = pipeline.run(
        pipeline.Request(
            name,
            data,
            folder / "out",
            parameters,
            options={"seed": seed, "pairing": folder / "pairs.csv", "attack": False, "report": False},
        )
    )
    assert "seed" not in result.manifest["method"] and result.manifest["method"]["seed_given"] is (seed is not None)
    lines = (folder / "pairs.csv").read_text().splitlines()[1:]
    return np.array([int(line.split(",")[1].strip('"')) - 1 for line in lines])


@cache
def _orders(n: int) -> np.ndarray:
    """What the attacker takes for the order of the input: the ids as they are, and all permutations of low seeds, both ways."""
    drawn = np.array([np.random.default_rng(seed).permutation(n) for seed in SEEDS])
    return np.vstack([np.arange(n), np.arange(n)[::-1], drawn, np.argsort(drawn, axis=1)])


def _best(person: np.ndarray) -> float:
    """The largest share of neighbors that are one person's in any such order."""
    found = person[_orders(len(person))]
    return float(np.mean(found[:, 1:] == found[:, :-1], axis=1).max())


def _chance(person: np.ndarray) -> float:
    """The share of neighbors that are one person's in a random order."""
    sizes, n = np.bincount(person), len(person)
    return float((sizes * (sizes - 1)).sum() / (n * (n - 1)))


def _by_luck(chance: float, n: int) -> float:
    """The largest share that the best of two thousand random orders comes to; more happens once in 500,000 times."""
    from scipy.stats import poisson  # slow to import, and few processes run these tests

    return float(poisson.isf(1e-9, chance * (n - 1)) / (n - 1))


def _among_equals(release: TrajectoryRelease, person: np.ndarray) -> float:
    """The same for an order in which equal trajectories are next to each other: any order of them gives the same file."""
    rows = zip(release.offsets[:-1], release.offsets[1:], strict=True)
    content = [(release.lon[i:j].tobytes(), release.lat[i:j].tobytes(), release.t[i:j].tobytes()) for i, j in rows]
    group = np.unique([hash(c) for c in content], return_inverse=True)[1]
    starts = np.flatnonzero(np.diff(group, prepend=-1, append=-1))
    pairs = sum(_chance(person[i:j]) * (j - i - 1) for i, j in pairwise(starts.tolist()) if j - i > 1)
    return float(pairs / (len(person) - 1))


@pytest.mark.parametrize("seed", [0, slow_param(123), None])
@pytest.mark.parametrize("name", METHODS)
def test_no_low_seed_puts_ids_back_in_order(name: str, seed: int | None, tmp_path: Path) -> None:
    source = _published(tmp_path, name, seed)
    assert len(source) > 50
    person = source // EACH
    best, chance = _best(person), _chance(person)
    assert best <= _by_luck(chance, len(source)), (best, chance)


@pytest.fixture(scope="module")
def other_release(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    return _published(tmp_path_factory.mktemp("other"), "simple-generalization", 0)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "simple-generalization"])
def test_two_releases_of_one_input_do_not_share_ids(name: str, other_release: np.ndarray, tmp_path: Path) -> None:
    one, two = _published(tmp_path, name, 0), other_release
    n = min(len(one), len(two))
    assert int((one[:n] == two[:n]).sum()) <= 8  # one is what chance gives


@pytest.mark.realdata
def test_cabs_are_not_put_back_in_order(realdata: Path, tmp_path: Path) -> None:
    """The attack of the issue on 643 rides: with the seed in the manifest it gave back the order of the file."""
    data = realdata / "sf_cabs" / "cabs_dataset_20080608_0700_0715.csv"
    with data.open() as file:
        driver = {row["trajectory_id"]: int(row["user_id"]) for row in csv.DictReader(file)}
    for name, parameters in (("microaggregation", {"k": 10}), ("simple-generalization", {})):
        folder, pairs = tmp_path / name, tmp_path / f"{name}.csv"
        options = {"seed": 0, "attack": False, "report": False, "pairing": pairs}
        result = pipeline.run(pipeline.Request(name, data, folder, parameters, options=options))
        # By the pairing and the file, so that nothing here depends on the order that a run puts trajectories into.
        with pairs.open() as file:
            rides = [row["trajectory_id"] for row in csv.DictReader(file)]
        person = np.unique([driver[ride] for ride in rides], return_inverse=True)[1]
        n = len(person)
        best = _best(person)
        chance = max(_chance(person), _among_equals(result.release, person))
        assert best <= _by_luck(chance, n), (name, best, chance)
        assert "seed" not in json.loads((folder / "manifest.json").read_text())["method"]
