"""A seed is a secret: it is in no file and no answer, and without one every random choice is drawn from fresh entropy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from conftest import Ran

SEED = 918_273_645


@pytest.fixture
def zones(tmp_path: Path) -> Path:
    path = tmp_path / "zones.csv"
    path.write_text("zone_id,lon,lat\n" + "".join(f"{i},{i},0\n" for i in range(6)))
    return path


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """Trips between a few zones."""
    rng = np.random.default_rng(1)
    rows = [f"{o},{d}" for o, d in rng.integers(0, 6, (400, 2)).tolist()]
    path = tmp_path / "trips.csv"
    path.write_text("origin,destination\n" + "\n".join(rows) + "\n")
    return path


def _flows(folder: Path) -> str:
    return (folder / "flows.csv").read_text()


def test_noise_is_fresh_unless_a_seed_is_given(
    trips: Path, zones: Path, tmp_path: Path, command: Callable[..., Ran]
) -> None:
    for name, seed in (("a", ()), ("b", ()), ("c", ("--seed", SEED)), ("d", ("--seed", SEED))):
        ran = command("anonymize", "laplace", trips, "--zones", zones, "-o", tmp_path / name, "--format", "csv", *seed)
        assert ran.code == 0 and str(SEED) not in ran.out + ran.err
    assert _flows(tmp_path / "a") != _flows(tmp_path / "b")
    assert _flows(tmp_path / "c") == _flows(tmp_path / "d")
    for name in "ac":
        written = "".join(path.read_text() for path in (tmp_path / name).iterdir())
        assert str(SEED) not in written and f"{SEED:,}" not in written
        method = json.loads((tmp_path / name / "manifest.json").read_text())["method"]
        assert "seed" not in method and method["seed_given"] is (name == "c")


def test_python_draws_fresh_noise_too(trips: Path, zones: Path, tmp_path: Path) -> None:
    for name in "ab":
        crowdveil.anonymize(trips, tmp_path / name, method="laplace", zones=zones, format="csv", report=False)
    assert _flows(tmp_path / "a") != _flows(tmp_path / "b")


def test_help_says_that_a_seed_is_a_secret(command: Callable[..., Ran]) -> None:
    said = " ".join(command("anonymize", "laplace", "--help").out.split())
    assert "Keep it secret: it repeats every random choice." in said


def test_attacks_draw_apart_from_the_method() -> None:
    from crowdveil.run.options import derive_seed, fresh

    assert derive_seed(1, "attacks") == derive_seed(1, "attacks") != 1
    assert len({derive_seed(seed, "attacks") for seed in range(50)}) == 50
    assert len({fresh() for _ in range(50)}) == 50


def test_a_run_attacks_with_draws_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of attacks are published: were they drawn with the seed of the method, they would reveal its draws."""
    from crowdveil.run import local, pipeline

    drawn: list[int] = []

    def attacks(
        data: object, release: object, guarantees: object, status: object, seed: int, progress: object
    ) -> list[Any]:
        drawn.append(seed)
        return []

    monkeypatch.setattr(local, "attack_release", attacks)
    rng = np.random.default_rng(0)
    rows = [
        f"{48 + y / 1e3},{2 + x / 1e3},{1_700_000_000 + i},{i // 3}" for i, (x, y) in enumerate(rng.random((30, 2)))
    ]
    (tmp_path / "points.csv").write_text("\n".join(["lat,lon,timestamp,user_id", *rows]) + "\n")
    for name in "ab":
        pipeline.run(
            pipeline.Request(
                "swapmob", tmp_path / "points.csv", tmp_path / name, {}, options={"seed": SEED, "report": False}
            )
        )
    assert len(drawn) == 2 and len(set(drawn)) == 1 and SEED not in drawn
