"""`crowdveil compare` for trajectories: the numbers are those of releases measured one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pytest

import crowdveil
from crowdveil.comparison.trajectories import K, TrajectoryMethodComparison, sample_trajectories, trajectory_candidates
from crowdveil.errors import InputError, ParameterError
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import RangeQueryParams
from crowdveil.model.canonical import canonical
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_measure, find_method
from crowdveil.synth.movers import make_movers
from crowdveil.synth.network import street_grid

FEW: dict[str, Any] = {"queries": 300, "windows_s": "0,300"}


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    """Sixty movers in a small town."""
    return make_movers(street_grid(1, side=8), 60, seed=2)


def compared(*arguments: Any, **options: Any) -> TrajectoryMethodComparison:
    found = crowdveil.compare(*arguments, **options)
    assert isinstance(found, TrajectoryMethodComparison)
    return found


def test_numbers_are_those_of_releases(movers: Trajectories) -> None:
    found = compared(movers, ["microaggregation", "swapmob"], k=[2, 4], seed=3, **FEW)
    labels = ["microaggregation:k=2", "microaggregation:k=4", "swapmob"]
    assert [outcome.label for outcome in found.outcomes] == labels
    params, data = RangeQueryParams(seed=3, **FEW), canonical(movers)
    rows = found.table.to_pylist()
    for row, outcome in zip(rows, found.outcomes, strict=True):
        method = find_method(outcome.label.partition(":")[0])
        parameters = {} if outcome.k is None else {"k": outcome.k}
        checked = method.params.checked(parameters)
        release: Any = method.run(data, checked, np.random.default_rng(3), lambda *_: None)
        alone = TrajectoryComparison(data, release)
        for name in ("sid", "aid"):
            value = find_measure(name).of(alone, params)[0]
            np.testing.assert_array_equal(outcome.by_window[name], value)
            assert row[name] == pytest.approx(value.mean())
        assert row["trajectories_removed"] == pytest.approx(1 - len(set(release.source.tolist())) / 60)
        assert row["seconds"] >= 0 and row["k"] == outcome.k
    assert [row["remark"] for row in rows] == [None, None, "heuristic"]
    assert found.table["trajectories_removed"].to_pylist()[0] == 0
    values = found.values.to_pylist()
    assert len(values) == 3 * 2 * 2 and {row["window_s"] for row in values} == {0, 300}


def test_all_methods_where_none_are_named(movers: Trajectories) -> None:
    names = {candidate.method.name for candidate in trajectory_candidates(None, K)}
    assert {"frechet-microaggregation", "swap-locations-2012", "log-cost-generalization", "microaggregation"} <= names
    assert "joint" not in names
    assert [c.label for c in trajectory_candidates(["microaggregation:k=3", "swapmob"], K)] == [
        "microaggregation:k=3",
        "swapmob",
    ]


def test_a_sample_is_drawn_by_the_seed(movers: Trajectories) -> None:
    few = sample_trajectories(movers, 20, 5)
    assert len(few) == 20 and len(sample_trajectories(movers, 100, 5)) == 60
    assert (
        few.ids.tolist()
        == sample_trajectories(movers, 20, 5).ids.tolist()
        != sample_trajectories(movers, 20, 6).ids.tolist()
    )


def test_tables_and_the_plot_are_written(movers: Trajectories, tmp_path: Path) -> None:
    found = compared(movers, ["microaggregation", "simple-generalization"], tmp_path / "out", k=[2, 3], **FEW)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "CONFIDENTIAL.txt",
        "compare.csv",
        "distortion.png",
        "summary.csv",
    ]
    assert pacsv.read_csv(tmp_path / "out" / "summary.csv").num_rows == 3
    head, *rows = found.lines()
    assert head.split()[:5] == ["method", "SID", "0", "SID", "300"] and len(rows) == 3
    assert "60 trajectories" in found.caption() and "300 queries" in found.caption()


def test_what_is_wrong_is_reported(movers: Trajectories) -> None:
    for arguments, options, reason in (
        ((movers, ["microaggregation", "joint"]), {}, "compare them in two runs"),
        ((movers, ["joint"]), {}, "name others"),
        ((movers, ["microaggregation"]), {"suppress": 0.1}, "suppress"),
        ((movers, ["microaggregation"]), {"k": 61}, "smaller k"),
        ((movers, ["microaggregation"]), {"windows_s": "x"}, "windows_s: wanted"),
        ((movers, []), {}, "at least one"),
    ):
        with pytest.raises((ParameterError, InputError), match=reason):
            crowdveil.compare(*arguments, **options)
    with pytest.raises(InputError, match="no trajectory"):
        crowdveil.compare(movers.where(np.zeros(60, np.bool_)), ["swapmob"])


def test_from_the_command_line(command: Any, movers: Trajectories, tmp_path: Path) -> None:
    crowdveil.write_trajectories(movers, tmp_path / "movers.csv")
    options = ("--methods", "microaggregation", "--k", "2,4", "--queries", 200, "--windows-s", "300")
    ran = command("compare", tmp_path / "movers.csv", *options, "-o", tmp_path / "out")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].split() == ["method", "SID", "300", "AID", "300", "removed", "seconds"]
    assert "Nothing was published" in ran.out and (tmp_path / "out" / "distortion.png").is_file()
    assert command("compare", tmp_path / "movers.csv", *options, "--step", "1h").sentence.endswith("leave it out.")
    refused = command("compare", tmp_path / "movers.csv", "--trajectories", "--methods", "joint")
    assert refused.code == 2 and "for flows" in refused.sentence
