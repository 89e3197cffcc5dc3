"""`crowdveil.compare` for trajectories: its numbers are those of releases that are measured one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.comparison.candidates import K, all_names, combinations
from crowdveil.comparison.samples import sample_trajectories
from crowdveil.errors import InputError
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.model.canonical import canonical
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_method

MEASURES = "sid:queries=300:windows_s=0+300,rmse,trajectories-removed"


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    """Sixty movers in a small town."""
    return make_movers(street_grid(1, side=8), 60, seed=2)


def test_numbers_are_those_of_releases(movers: Trajectories, tmp_path: Path) -> None:
    methods = ["microaggregation", "time-partitioned-microaggregation", "swapmob"]
    found = crowdveil.compare(
        movers, methods, tmp_path / "out", k=[2, 4], vary={"interval_s": [300, 3600]}, measures=MEASURES, seed=3
    )
    settings = [(run.method, run.k, run.varied.get("interval_s")) for run in found.runs]
    assert settings == [
        *((methods[0], k, None) for k in (2, 4)),
        *((methods[1], k, s) for k in (2, 4) for s in (300, 3600)),
        (methods[2], None, None),
    ]
    rows, data = found.table.to_pylist(), canonical(movers)
    for run in found.runs:
        method = find_method(run.method)
        params = method.params.checked({**({} if run.k is None else {"k": run.k}), **run.varied})
        release: Any = method.run(data, params, np.random.default_rng(3), lambda *_: None)
        mine = {row["measure"]: row["value"] for row in rows
                if (row["method"], row["k"], row["interval_s"]) == (run.method, run.k, run.varied.get("interval_s"))}  # fmt: skip
        for scores in crowdveil.measure(data, release, MEASURES.split(",")).scores:
            for part, _, mean, _ in scores.columns():
                assert mine[f"{scores.asked.label} {part}".strip()] == pytest.approx(mean, nan_ok=True)
        assert run.remark == ("heuristic" if run.method == "swapmob" else "") and mine["seconds"] >= 0
    head = found.lines()[0]
    assert "SID 0 to 300 s" in head and "RMSE" in head and "60 of 60 trajectories" in found.caption
    assert {path.name for path in (tmp_path / "out").iterdir()} >= {"comparison.csv", "measures.png", "trade-off.png"}


def test_all_methods_for_trajectories() -> None:
    names = all_names(Trajectories)
    assert {"frechet-microaggregation", "swap-locations-2012", "log-cost-generalization", "microaggregation"} <= {
        *names
    }
    assert "joint" not in names
    made = combinations(["microaggregation:k=3", "swapmob", "microaggregation"], {"k": K[Trajectories]}, [])
    assert [(c.label, c.k) for c in made] == [
        ("microaggregation:k=3", 3), ("swapmob", None), *(("microaggregation", k) for k in (2, 4, 8))
    ]  # fmt: skip


def test_a_sample_is_drawn_by_the_seed(movers: Trajectories) -> None:
    first, again, other = (sample_trajectories(movers, 20, seed).ids.tolist() for seed in (5, 5, 6))
    assert first == again != other and len(first) == 20
    assert len(sample_trajectories(movers, 100, 5)) == 60
    with pytest.raises(InputError, match="at least one trajectory"):
        crowdveil.compare(movers.where(np.zeros(60, np.bool_)), ["swapmob"])


def test_from_the_command_line(command: Any, movers: Trajectories, tmp_path: Path) -> None:
    crowdveil.write_trajectories(movers, tmp_path / "movers.csv")
    options = ("--methods", "microaggregation", "-k", "2,4", "--suppress", "0%,10%", "--measures", "rmse")
    ran = command("compare", tmp_path / "movers.csv", *options)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].split() == ["method", "k", "suppress", "RMSE", "seconds"]
    assert "Take k = " in ran.out
    refused = command("compare", tmp_path / "movers.csv", "--methods", "microaggregation", "-k", "61")
    assert refused.code == 2 and "smaller k" in refused.sentence
