"""Measures, inputs and varied parameters of comparisons: the numbers are those of releases measured one by one."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil import engine
from crowdveil.comparison.flows import FlowComparisonParams, sample_matrices
from crowdveil.comparison.sweep import run_sweep, sweep_candidates
from crowdveil.errors import InputError, ParameterError
from crowdveil.model.arrays import slice_sums
from crowdveil.model.canonical import canonical
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.registry import find_method
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import origins_near
from crowdveil.synth.movers import make_movers
from crowdveil.synth.network import street_grid
from crowdveil.synth.profiles import make_profile

MEASURES = "generalization-cost:delta=1,suppressed,generalization-boxes,t-closeness"


@pytest.fixture(scope="module")
def flows() -> Flows:
    """Three matrices of few flows, with trees."""
    made = make_profile("nyc", np.random.default_rng(3), 3)
    return made.where(np.random.default_rng(4).random(len(made)) < 0.3)


def _release(name: str, data: Any, **parameters: Any) -> Any:
    method = find_method(name)
    return method.run(data, method.params.checked(parameters), np.random.default_rng(0), lambda *_: None)


def test_requested_measures_are_those_of_a_release(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.compare(flows, ["oigh", "atg-dual:v_target=200"], tmp_path / "out", k=5, measures=MEASURES)
    rows = {row["method"]: row for row in found.table.to_pylist()}
    for label, release in (
        ("oigh", _release("oigh", flows, k=5)),
        ("atg-dual:v_target=200", _release("atg-dual", flows, k=5, v_target=200)),
    ):
        measured = crowdveil.measure(flows, release, MEASURES.split(","))
        for scores in measured.scores:
            for part, _, mean, _ in scores.columns():
                name = f"{scores.asked.label} {part}".strip()
                assert rows[label][name] == pytest.approx(mean, nan_ok=True), name
    assert "generalization" not in rows["oigh"]
    assert {row["measure"] for row in found.values.to_pylist()} == {*rows["oigh"]} - {"method", "remark"}
    assert (tmp_path / "out" / "ratios.png").is_file()


def test_the_multiplier_is_the_largest_value_of_the_concave_function(flows: Flows) -> None:
    """λ* maximizes L(λ) = min over partitions of cost + λ (suppressed − budget): no multiplier near it gives more."""
    found = crowdveil.compare(flows, ["atg-dual:v_target=200", "oigh"], k=5, measures="multiplier,v-target")
    dual, oigh = found.outcomes
    assert np.isnan(oigh.by_step["multiplier"]).all() and set(dual.by_step["v-target"].tolist()) == {200.0}  # type: ignore[union-attr]
    sampled = sample_matrices(flows, None, 5)
    system = RegionSpace.trees(sampled)
    for step in range(sampled.steps):
        matrix = Matrix.of(sampled, step, system)
        boxes = BoxSpace.of_origins(matrix, origins_near(matrix, 200.0), 5)
        budget = matrix.total // 10

        def value(at: Fraction, boxes: BoxSpace = boxes, budget: int = budget) -> Fraction:
            cost, suppressed, _ = boxes.solve_at(at)
            return cost + at * (suppressed - budget)

        best = Fraction(dual.by_step["multiplier"][step]).limit_denominator(10**6)  # type: ignore[union-attr]
        assert all(value(best) + Fraction(1, 100) >= value(best * Fraction(n, 100)) for n in range(0, 300, 7))


def test_the_multiplier_of_joint_maximizes_the_function_of_its_boxes(flows: Flows) -> None:
    """As for `atg-dual`, over all boxes; with cuts it is the multiplier of the partition that is cut."""
    names = ["joint", "joint:splits=dyadic", "joint:splits=free", "atg-soft:price=0.2"]
    joint, dyadic, cut, soft = crowdveil.compare(flows, names, k=5, measures="multiplier").outcomes
    multipliers = joint.by_step["multiplier"]  # type: ignore[union-attr]
    assert np.isfinite(multipliers).all()
    assert (dyadic.by_step["multiplier"] == cut.by_step["multiplier"]).all()  # type: ignore[union-attr]
    sampled = sample_matrices(flows, None, 5)
    assert soft.by_step["multiplier"] == pytest.approx(0.2 * len(sampled.zones))  # type: ignore[union-attr]
    system = RegionSpace.trees(sampled)
    for step in range(sampled.steps):
        boxes = BoxSpace.of(sampled, step, system, 5)
        budget = boxes.total // 10
        best = Fraction(multipliers[step]).limit_denominator(10**6)

        def value(at: Fraction, boxes: BoxSpace = boxes, budget: int = budget) -> Fraction:
            cost, suppressed, _ = boxes.solve_at(at)
            return cost + at * (suppressed - budget)

        assert all(value(best) + Fraction(1, 100) >= value(best * Fraction(n, 100)) for n in range(0, 300, 7))


def test_seconds_of_matrices_add_up_and_follow_their_size(flows: Flows) -> None:
    with engine.timed_tasks() as tasks:
        engine.LocalEngine(2).map(lambda n: (np.full(n, np.linalg.norm(np.ones((400 * n + 1, 400)))),), 3)
    assert len(tasks) == 1 and len(tasks[0]) == 3 and tasks[0][2] > 0
    outcome = crowdveil.compare(flows, ["oigh"], k=5).outcomes[0]
    assert outcome.seconds_by_step.sum() == pytest.approx(outcome.seconds * flows.steps)  # type: ignore[union-attr]
    assert (outcome.seconds_by_step > 0).all()  # type: ignore[union-attr]


def test_a_varied_target_is_chosen_by_the_sizes_of_areas(flows: Flows, tmp_path: Path) -> None:
    targets = [30, 200, 3000]
    found = crowdveil.sweep("atg-dual", flows, tmp_path / "s", k=[5, 10], suppress=["10%"], vary={"v_target": targets})
    rows = found.table.to_pylist()
    assert [(row["k"], row["v_target"]) for row in rows] == [(k, t) for k in (5, 10) for t in targets]
    for k in (5, 10):
        apart = {row["v_target"]: abs(row["origin-tiles"] - row["destination-tiles"]) for row in rows if row["k"] == k}
        best = min(apart, key=lambda target: apart[target])
        assert [row["v_target"] for row in rows if row["k"] == k and row["chosen"]] == [best]
        assert any(f"k = {k} " in sentence and f"v_target = {best}" in sentence for sentence in found.choices())
    assert sorted(path.name for path in (tmp_path / "s").iterdir()) == [
        "CONFIDENTIAL.txt",
        "sweep.csv",
        "sweep.png",
        "time.png",
        "varied.png",
    ]
    assert found.method == "atg-dual" and found.recommended is not None
    assert found.recommended.varied["v_target"] in targets
    with pytest.raises(ParameterError, match="no method that is compared has a parameter color"):
        crowdveil.sweep("atg-dual", flows, vary=["color=1,2"])
    with pytest.raises(ParameterError, match="other than k"):
        crowdveil.sweep("atg-dual", flows, vary=["k=1,2"])


def test_other_varied_parameters_are_chosen_by_their_error(flows: Flows) -> None:
    found = run_sweep(flows, sweep_candidates("joint", [5], ["10%"], None, {"min_tiles": ["4", "1"]}), 0,
                      varied=["min_tiles"])  # fmt: skip
    assert [trial.varied["min_tiles"] for trial in found.chosen] == [1]
    assert "Ḡ is least" in found.choices()[0]


def test_samples_at_random_and_by_volume(flows: Flows) -> None:
    trips = slice_sums(flows.offsets, flows.volume)
    few = FlowComparisonParams(sampling="random", seed=7)
    drawn = [sample_matrices(flows, 2, 5, (), few).t.tolist() for _ in range(2)]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 2
    others = {
        tuple(sample_matrices(flows, 2, 5, (), FlowComparisonParams(sampling="random", seed=s)).t) for s in range(9)
    }
    assert len(others) > 1
    large = sample_matrices(flows, None, 5, (), FlowComparisonParams(min_trips=int(trips.max())))
    assert large.t.tolist() == [flows.t[int(np.argmax(trips))]]
    with pytest.raises(InputError, match="no matrix has so many trips"):
        crowdveil.compare(flows, ["oigh"], min_trips=int(trips.max()) + 1)


def test_several_inputs_have_a_row_each(flows: Flows, tmp_path: Path) -> None:
    first = flows.at_steps(np.array([0]))
    found = crowdveil.compare_inputs([flows, first], ["oigh", "suppression"], tmp_path / "out", k=5)
    assert list(found.by_input) == ["input 1", "input 2"]
    rows = found.table.to_pylist()
    assert [(row["input"], row["method"]) for row in rows] == [
        (name, method) for name in found.by_input for method in ("oigh", "suppression")
    ]
    assert {row["tiles"] for row in rows} == {len(flows.zones)}
    alone = crowdveil.compare(first, ["oigh", "suppression"], k=5).table
    assert [row["generalization"] for row in rows[2:]] == alone["generalization"].to_pylist()
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"summary.csv", "ratios.png", "time-by-tiles.png", "1-ratios.png", "2-ratios.png"} <= names
    with pytest.raises(ParameterError, match="at least one input"):
        crowdveil.compare_inputs([], ["oigh"])
    with pytest.raises(ParameterError, match="one file for all 2 inputs, or one for each, but got 3"):
        crowdveil.compare_inputs([flows, first], ["oigh"], zones="a.csv,b.csv,c.csv")


def test_grids_of_one_input_from_the_command_line(command: Any, tmp_path: Path) -> None:
    rows = [
        f"{2 + i % 7 / 50:.3f},{48 + i % 5 / 50:.3f},{2 + i % 3 / 50:.3f},{48 + i % 4 / 50:.3f}" for i in range(400)
    ]
    text = "origin_lon,origin_lat,destination_lon,destination_lat\n" + "\n".join(rows) + "\n"
    (tmp_path / "trips.csv").write_text(text)
    ran = command(
        "compare", tmp_path / "trips.csv", "--methods", "uniform", "--grids", "2km,4km", "--step", "all", "--k", 3
    )
    assert ran.code == 0, ran.err
    titles = [line for line in ran.out.splitlines() if line.startswith("trips, ")]
    assert len(titles) == 2 and titles[0].startswith("trips, 2km, ") and titles[1].endswith(" tiles")
    refused = command(
        "compare", tmp_path / "trips.csv", "--grids", "2km", "--zones", "grid:1km", "--methods", "uniform"
    )
    assert refused.code == 2 and "omit one" in refused.sentence


@pytest.fixture(scope="module")
def movers() -> Trajectories:
    """Forty movers in a small town."""
    return make_movers(street_grid(1, side=8), 40, seed=2)


@pytest.mark.slow
def test_measures_of_trajectories_are_those_of_a_release(movers: Trajectories, tmp_path: Path) -> None:
    names = "rmse,record-linkage,propensity-score,trajectories-removed,random-location-entropy"
    found = crowdveil.compare(
        movers, ["time-partitioned-microaggregation", "swapmob"], tmp_path / "out", k=[2, 4], measures=names,
        vary={"interval_s": [300, 3600]},
    )  # fmt: skip
    rows, data = found.table.to_pylist(), canonical(movers)
    assert [(row["k"], row["interval_s"]) for row in rows] == [(2, 300), (2, 3600), (4, 300), (4, 3600), (None, None)]
    for row in rows[:4]:
        release = _release("time-partitioned-microaggregation", data, k=row["k"], interval_s=row["interval_s"])
        for scores in crowdveil.measure(data, release, names.split(",")).scores:
            for part, _, mean, _ in scores.columns():
                name = f"{scores.asked.label} {part}".strip().replace("trajectories-removed", "trajectories_removed")
                assert row[name] == pytest.approx(mean), name
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert {
        "rmse.png",
        "record-linkage.png",
        "propensity-score.png",
        "seconds.png",
        "trajectories-removed.png",
    } <= pictures
    assert "distortion.png" not in pictures and "queries" not in found.caption()


def test_a_sweep_of_trajectories(command: Any, movers: Trajectories, tmp_path: Path) -> None:
    found = crowdveil.sweep_trajectories("microaggregation", movers, k=[2, 4], suppress=["0%", "10%"], measures="rmse")
    rows = found.table.to_pylist()
    assert {(row["k"], row["suppress"]) for row in rows} == {(k, s) for k in (2, 4) for s in (0.0, 0.1)}
    assert found.recommendation().startswith("Take microaggregation:") and found.weighed == "rmse"
    crowdveil.write_trajectories(movers, tmp_path / "movers.csv")
    ran = command(
        "sweep", "microaggregation", tmp_path / "movers.csv", "--k", "2,4", "--measures", "rmse", "-o", tmp_path / "o"
    )
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0].split() == ["method", "RMSE", "removed", "seconds"]
    assert (tmp_path / "o" / "sweep.csv").is_file() and (tmp_path / "o" / "rmse.png").is_file()
    wrong = command("sweep", "microaggregation", tmp_path / "movers.csv", "--suppress-trips", "3")
    assert wrong.code == 2 and "leave it out" in wrong.sentence
    with pytest.raises(ParameterError, match="no k"):
        crowdveil.sweep_trajectories("swapmob", movers)
    with pytest.raises(ParameterError, match="no measure"):
        crowdveil.compare(movers, ["swapmob"], measures="nothing")
