"""`crowdveil.compare` for flows: its numbers are those of releases that are measured one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import crowdveil
from crowdveil import engine
from crowdveil.comparison.candidates import Candidate
from crowdveil.comparison.comparison import ALL_INPUTS, Comparison, recommend
from crowdveil.comparison.plots import front, plot_trade_off
from crowdveil.comparison.samples import ComparisonParams, sample_matrices, spread_evenly
from crowdveil.errors import CrowdveilError, InputError, OutputError
from crowdveil.experiments.profiles import make_profile
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.registry import find_method
from crowdveil.solve.od.boxes import BoxSpace
from crowdveil.solve.od.region_space import RegionSpace
from crowdveil.solve.od.step_matrix import Matrix
from crowdveil.solve.od.targets import origins_near

ALL_MATRICES = ComparisonParams()


@pytest.fixture(scope="module")
def flows() -> Flows:
    """Three matrices of few flows, with trees."""
    made = make_profile("nyc", np.random.default_rng(3), 3)
    return made.where(np.random.default_rng(4).random(len(made)) < 0.3)


def value(found: Comparison, measure: str, **settings: Any) -> Any:
    """Return the only value of a measure in the table for these settings."""
    rows = [row for row in found.table.to_pylist() if row["measure"] == measure]
    (row,) = [row for row in rows if all(row[name] == wanted for name, wanted in settings.items())]
    return row["value"]


def test_numbers_are_those_of_a_release(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.compare(flows, ["oigh", "joint:splits=dyadic"], k=5, suppress="20%", seed=1)
    for run, more in zip(found.runs, ({}, {"splits": "dyadic"}), strict=True):
        name = run.method.partition(":")[0]
        release = crowdveil.anonymize(flows, tmp_path / name, method=name, k=5, suppress=0.2, seed=1, **more).folder
        measured = crowdveil.measure(flows, release)
        for symbol in ("Ḡ", "E", "D", "S"):
            scores = measured[symbol]
            assert value(found, scores.measure.name, method=run.method) == pytest.approx(float(scores.mean))
            assert run.values[symbol].tolist() == pytest.approx(scores.by_step.tolist())
        assert run.mean("seconds") > 0 and run.remark == "" and (run.k, run.suppress) == (5, "20%")
        assert value(found, "total-seconds", method=run.method) == pytest.approx(3 * run.mean("seconds"))


def test_measures_with_parameters_and_parts(flows: Flows) -> None:
    names = "generalization-cost:delta=1,origin-margin"
    found = crowdveil.compare(flows, ["atg-dual:v_target=200"], k=5, measures=names)
    method = find_method("atg-dual")
    params = method.params.checked({"k": 5, "v_target": 200})
    release: Any = method.run(flows, params, np.random.default_rng(0), lambda *_: None)
    for scores in crowdveil.measure(flows, release, names.split(",")).scores:
        for part, _, mean, _ in scores.columns():
            assert value(found, f"{scores.asked.label} {part}".strip()) == pytest.approx(mean, nan_ok=True)


def test_methods_with_another_guarantee_have_a_remark(flows: Flows) -> None:
    found = crowdveil.compare(flows, ["joint", "mondrian", "suppression", "atg-soft", "laplace", "glove"])
    remarks = {run.method: run.remark for run in found.runs}
    assert remarks["joint"] == remarks["mondrian"] == ""
    assert remarks["suppression"] == remarks["atg-soft"] == "has no budget"
    assert remarks["laplace"] == "noise in place of k, has no budget" and remarks["glove"] == "rows overlap"
    assert value(found, "suppressed", method="laplace") is None


def test_all_methods_where_none_are_named(flows: Flows) -> None:
    one = flows.at_steps(np.array([0]))
    found = crowdveil.compare(one.where(np.arange(len(one)) < 300))
    methods = [run.method for run in found.runs]
    assert methods[:3] == ["joint", "joint:splits=dyadic", "atg-dual"] and "suppression" in methods
    assert "simple-generalization" not in methods
    assert any(label.startswith("uniform") and "grid" in str(reason) for label, reason in found.left_out.items())


def test_a_method_that_fails_is_left_out(flows: Flows, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="grid"):
        crowdveil.compare(flows, ["uniform"])
    plain = Candidate.run

    def run(self: Candidate, *arguments: Any) -> Any:
        if self.method.name == "oigh":
            raise MemoryError
        return plain(self, *arguments)

    monkeypatch.setattr(Candidate, "run", run)
    found = crowdveil.compare(flows, ["oigh", "joint"])
    assert [run.method for run in found.runs] == ["joint"]
    assert "not enough memory" in str(found.left_out["oigh:k=10:suppress=10%"])


def test_each_combination_runs_once(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.compare(
        flows, ["atg-dual", "oigh:k=7", "suppression", "oigh:k=7"], tmp_path / "c", k=[10, 5, 10], suppress=["20%", 0.1],
        vary={"v_target": [30, 200]}, sample=2, format="parquet",
    )  # fmt: skip
    settings = [(run.method, run.k, run.suppress, run.varied.get("v_target")) for run in found.runs]
    assert settings == [
        *(("atg-dual", k, s, v) for k in (10, 5) for s in ("20%", "10%") for v in (30, 200)),
        *(("oigh:k=7", 7, s, None) for s in ("20%", "10%")),
        *(("suppression", k, None, None) for k in (10, 5)),
    ]
    assert len(found.lines()) == 13 and found.recommendation() == ""
    alone = crowdveil.compare(flows, ["oigh"], k=7, suppress="20%", sample=2)
    assert value(found, "generalization", method="oigh:k=7", suppress="20%") == alone.runs[0].mean("Ḡ")
    assert pq.read_table(tmp_path / "c" / "comparison.parquet").equals(found.table)


def test_budgets_can_be_numbers_of_trips(flows: Flows) -> None:
    found = crowdveil.compare(flows, ["oigh"], k=5, suppress=["20trips", "4trips"], sample=1)
    assert [run.suppress for run in found.runs] == ["20trips", "4trips"]
    assert found.runs[1].values["S"][0] * flows.volume.sum() <= 4 * flows.steps


def test_the_rule_of_the_recommendation(flows: Flows) -> None:
    five, ten, twenty = [(5, 8.1), (10, 9.0)], [(5, 7.9), (10, 15.7), (20, 15.9)], [(5, 4.0), (10, 4.1)]
    table = [(k, s, error) for s, errors in ((0.05, five), (0.1, ten), (0.2, twenty)) for k, error in errors]
    # 5 % is too coarse (8.1 > 8), 10 % is not (7.9); k = 10 is acceptable there (15.7 <= 15.8), k = 20 is not.
    assert recommend(table) == (10, 0.1)
    assert recommend([(5, 0, 2.0), (10, 0, 4.0), (20, 0, 4.1)]) == (10, 0)
    found = crowdveil.compare(flows, ["joint"], k=[5, 10], suppress=["10%", "20%"], sample=2)
    best = found.recommended
    assert best is not None and found.recommendation().startswith(
        f"Take k = {best.k} and suppress = {best.suppress} (Ḡ"
    )
    without = crowdveil.compare(flows, ["suppression"], k=[2, 50])
    assert without.criterion.key == "E" and without.recommended is not None and without.recommended.k == 2


def test_several_inputs_have_a_row_each_and_one_for_all(flows: Flows, tmp_path: Path) -> None:
    first = flows.at_steps(np.array([0]))
    found = crowdveil.compare([flows, first], ["oigh", "suppression"], tmp_path / "out", k=5)
    assert [run.input for run in found.rows] == [n for n in ("input 1", "input 2", ALL_INPUTS) for _ in range(2)]
    with pytest.raises(CrowdveilError, match="one file for all 2 inputs or one for each, got 3"):
        crowdveil.compare([flows, first], ["oigh"], zones="a.csv,b.csv,c.csv")
    alone = crowdveil.compare(first, ["oigh"], k=5)
    assert value(found, "generalization", input="input 2", method="oigh") == alone.runs[0].mean("Ḡ")
    errors = np.concatenate([run.values["E"] for run in found.runs if run.method == "oigh"])
    assert len(errors) == 4
    assert value(found, "reconstruction-error", input=ALL_INPUTS, method="oigh") == pytest.approx(errors.mean())
    seconds = sum(run.total_seconds for run in found.runs if run.method == "oigh")
    assert value(found, "total-seconds", input=ALL_INPUTS, method="oigh") == pytest.approx(seconds)
    head, *lines = found.lines()
    assert "total seconds" in head and f" {seconds:.3g} " in f"{lines[4]} "
    assert found.caption.startswith("Means over 3 of 3 matrices of input 1 and 1 of 1 matrix of input 2. ")


def test_files_are_confidential_and_their_owners_alone(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.compare(flows, ["suppression"], tmp_path / "c")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "c").iterdir()}
    assert set(modes.values()) == {0o600} and (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    assert set(modes) == {"CONFIDENTIAL.txt", "comparison.csv", "measures.png", "trade-off.png"}
    assert "confidential" in (tmp_path / "c" / "CONFIDENTIAL.txt").read_text()
    assert "CONFIDENTIAL" in plot_trade_off(found.runs, found.columns).figure.get_suptitle()
    with pytest.raises(OutputError, match="exists"):
        crowdveil.compare("no-such-file.csv", output=tmp_path / "c")
    with pytest.raises(OutputError, match="not replaced"):
        crowdveil.compare("no-such-file.csv", output=tmp_path, overwrite=True)


def test_the_front_is_what_nothing_else_beats_in_both(flows: Flows) -> None:
    points = [(1.0, 5.0), (1.0, 4.0), (2.0, 4.0), (3.0, 2.0), (4.0, 3.0), (5.0, 1.0), (0.0, float("nan"))]
    assert front(points) == [(1.0, 4.0), (3.0, 2.0), (5.0, 1.0)] and front([]) == []
    found = crowdveil.compare(flows, ["oigh", "joint", "glove"], k=20)
    band = plot_trade_off(found.runs, found.columns).panels[0].lines[-1]
    points = [(run.mean("S"), run.mean("Ḡ")) for run in found.runs if not run.remark]
    assert [tuple(point) for point in band.get_xydata()] == front(points)


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (["no-such"], {}, "no method no-such"),
        (["simple-generalization"], {}, "Name others"),
        (["joint", "microaggregation"], {}, "Compare them in two runs"),
        (["joint:color=red"], {}, "joint: color: there is no such parameter"),
        (["joint:splits"], {}, "as in joint:splits=dyadic"),
        ([], {}, "at least one"),
        (["joint"], {"k": 1}, "k: Expected"),
        (["joint"], {"k": []}, "at least one value"),
        (["joint"], {"k": [5, 10**9]}, "Choose a smaller k"),
        (["laplace"], {"k": 5}, "compared method, got k"),
        (["joint"], {"suppress": []}, "at least one value"),
        (["suppression"], {"suppress": "5%"}, "compared method, got suppress"),
        (["joint"], {"vary": ["color=1,2"]}, "compared method, got color"),
        (["joint"], {"vary": ["k=1,2"]}, "not k or suppress"),
        (["joint"], {"sample": 0}, "sample: Expected"),
        (["joint"], {"measures": "nothing"}, "no measure"),
        (["oigh"], {"min_trips": 10**9}, "Expected matrices with this number of trips"),
    ],
)
def test_what_is_wrong_is_reported(flows: Flows, arguments: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(CrowdveilError, match=says):
        crowdveil.compare(flows, arguments, **options)


def test_a_comparison_needs_an_input() -> None:
    with pytest.raises(CrowdveilError, match="at least one input, got none"):
        crowdveil.compare([], ["joint"])


def _dense(original: Flows, release: Any, step: int) -> tuple[Any, Any]:
    """The reconstruction and the original of a step by their definition."""
    n, areas = len(original.zones), release.areas
    rebuilt, matrix = np.zeros((n, n)), np.zeros((n, n))
    for row in range(release.offsets[step], release.offsets[step + 1]):
        o, d = (
            areas.tiles[areas.offsets[a] : areas.offsets[a + 1]]
            for a in (release.origin[row], release.destination[row])
        )
        rebuilt[np.ix_(o, d)] += release.volume[row] / (len(o) * len(d))
    here = original.step == step
    matrix[original.origin[here], original.destination[here]] = original.volume[here]
    return rebuilt, matrix


def test_overlapping_rows_add_up(flows: Flows) -> None:
    method = find_method("glove")
    release: Any = method.run(flows, method.params(), np.random.default_rng(0), lambda done, total: None)
    assert OdComparison.between(flows, release).row is None  # otherwise this test says nothing
    values = crowdveil.compare(flows, ["glove"]).runs[0].values
    for step in range(flows.steps):
        rebuilt, matrix = _dense(flows, release, step)
        assert values["E"][step] == pytest.approx(np.abs(rebuilt - matrix).sum() / matrix.sum())
        shares = rebuilt / rebuilt.sum() - matrix / matrix.sum()
        assert values["D"][step] == pytest.approx(np.abs(shares).sum())


def test_the_multiplier_maximizes_the_concave_function(flows: Flows) -> None:
    """λ* maximizes L(λ) = min over partitions of cost + λ (suppressed − budget): no multiplier near it gives more."""
    names = ["atg-dual:v_target=200", "oigh", "joint", "joint:splits=dyadic", "joint:splits=free", "atg-soft:price=0.2"]
    found = crowdveil.compare(flows, names, k=5, measures="multiplier,v-target")
    dual, oigh, joint, dyadic, free, soft = (run.values["multiplier"] for run in found.runs)
    assert np.isnan(oigh).all() and set(found.runs[0].values["v-target"].tolist()) == {200.0}
    assert (dyadic == free).all()  # the multiplier of the partition that is cut
    sampled = sample_matrices(flows, 5, (), ALL_MATRICES)
    assert soft == pytest.approx(0.2 * len(sampled.zones))
    system = RegionSpace.trees(sampled)
    for step in range(sampled.steps):
        matrix = Matrix.of(sampled, step, system)
        for best, boxes in (
            (dual[step], BoxSpace.of_origins(matrix, origins_near(matrix, 200.0), 5)),
            (joint[step], BoxSpace.of(sampled, step, system, 5)),
        ):
            at = Fraction(best).limit_denominator(10**6)
            tried = [
                boxes.solve_at(multiplier) for multiplier in [at, *(at * Fraction(n, 100) for n in range(0, 300, 7))]
            ]
            multipliers = [at, *(at * Fraction(n, 100) for n in range(0, 300, 7))]
            values = [
                cost + multiplier * (suppressed - matrix.total // 10)
                for multiplier, (cost, suppressed, _) in zip(multipliers, tried, strict=True)
            ]
            assert max(values) <= values[0] + Fraction(1, 100)


def test_seconds_of_matrices_add_up(flows: Flows) -> None:
    with engine.timed_tasks() as tasks:
        engine.LocalEngine(2).map(lambda n: (np.full(n, np.linalg.norm(np.ones((400 * n + 1, 400)))),), 3)
    assert len(tasks) == 1 and len(tasks[0]) == 3 and tasks[0][2] > 0
    assert (crowdveil.compare(flows, ["oigh"], k=5).runs[0].values["seconds"] > 0).all()


def test_samples_of_matrices(flows: Flows) -> None:
    assert spread_evenly(10, 4).tolist() == [0, 3, 6, 9] and spread_evenly(3, 10).tolist() == [0, 1, 2]
    assert len(spread_evenly(1000, None)) == 10 and spread_evenly(1000, None)[-1] == 999
    assert [len(spread_evenly(100, None, n)) for n in (1000, 10**8, 10**12)] == [10, 2, 1]
    drawn = {
        seed: sample_matrices(flows, 5, (), ComparisonParams(sample=2, sampling="random", seed=seed)).t.tolist()
        for seed in (*range(9), 0)
    }
    assert all(len(t) == 2 for t in drawn.values()) and len(set(map(tuple, drawn.values()))) > 1
    trips = flows.trips_by_step
    largest = sample_matrices(flows, 5, (), ComparisonParams(min_trips=int(trips.max())))
    assert largest.t.tolist() == [flows.t[int(np.argmax(trips))]]
    zones, t, n = Zones.from_ids(["a", "b"]), np.arange(4), np.zeros(4, np.int32)
    small = Flows.from_rows(zones, t, n, n, np.array([30, 9, 10, 40]), step_s=3600)
    assert sample_matrices(small, 10, (), ALL_MATRICES).t.tolist() == [0, 2, 3]  # others are suppressed completely
    assert sample_matrices(small, 100, (), ALL_MATRICES).steps == 4  # each method reports that k is too large
    with pytest.raises(InputError, match="at least one flow"):
        crowdveil.compare(flows.where(np.zeros(len(flows), np.bool_)), ["joint"])


def test_steps_are_taken_with_their_people(flows: Flows) -> None:
    people = np.minimum(flows.volume, 3)
    offsets = np.concatenate([[0], np.cumsum(people)])
    known = replace(flows, k_unit="people", people=people, person_offsets=offsets, person_ids=np.arange(offsets[-1]))
    taken = known.at_steps(np.array([0, 2]))
    assert taken.t.tolist() == flows.t[[0, 2]].tolist()
    rows = np.flatnonzero(flows.step != 1)
    assert taken.origin.tolist() == flows.origin[rows].tolist() and taken.volume.tolist() == flows.volume[rows].tolist()
    assert taken.person_ids is not None
    assert taken.person_ids.tolist() == known.person_ids[np.isin(row_slices(offsets), rows)].tolist()  # type: ignore[index]


def test_from_the_command_line(command: Any, tmp_path: Path) -> None:
    rows = [
        f"{o},{d},2026-03-02T0{h}:00:00,{3 * o + 5 * d + h}" for h in (7, 8, 9) for o in (1, 2, 3) for d in (1, 2, 3)
    ]
    data, zones = tmp_path / "flows.csv", tmp_path / "zones.csv"
    data.write_text("origin,destination,time,volume\n" + "\n".join(rows) + "\n")
    zones.write_text("id,lon,lat\n1,2.0,48.0\n2,2.1,48.0\n3,2.2,48.1\n")
    options = ("--zones", zones, "--methods", "joint, suppression,oigh", "-o", tmp_path / "out", "-k", "10,20")
    ran = command("compare", data, *options)
    assert ran.code == 0, ran.err
    head, *lines = ran.out.splitlines()
    assert head.split() == ["method", "k", "suppress", "Ḡ", "E", "D", "S", "seconds"]
    assert [line.split()[:2] for line in lines[:3]] == [["joint", "10"], ["joint", "20"], ["suppression", "10"]]
    assert "Nothing was published" in ran.out and "3 matrices" in ran.out
    assert pacsv.read_csv(tmp_path / "out" / "comparison.csv").num_rows == 6 * 6
    assert "--overwrite" in command("compare", data, *options).sentence
    one = command("compare", data, "--zones", zones, "--methods", "joint", "-k", "10,20", "--suppress", "0%,30%")
    assert one.code == 0 and "Take k = " in one.out
    for arguments, says in (
        (("--methods", ","), "at least one"),
        (("--methods", "joint", "-k", "5,x"), "Expected a whole number"),
        (("--methods", "joint", "--suppress", "x"), "suppress: Expected a share"),
        (("--methods", "joint", "--trajectories"), "for flows"),
        (("--methods", "microaggregation", "--step", "1h"), "there is no such parameter"),
    ):
        ran = command("compare", data, *arguments)
        assert ran.code == 2 and says in ran.sentence and ran.out == ""


def test_several_grids_of_one_input(command: Any, tmp_path: Path) -> None:
    rows = [
        f"{2 + i % 7 / 50:.3f},{48 + i % 5 / 50:.3f},{2 + i % 3 / 50:.3f},{48 + i % 4 / 50:.3f}" for i in range(400)
    ]
    text = "origin_lon,origin_lat,destination_lon,destination_lat\n" + "\n".join(rows) + "\n"
    (tmp_path / "trips.csv").write_text(text)
    grids = ("--zones", "grid:2km,grid:4km", "--step", "all", "-k", 3)
    ran = command("compare", tmp_path / "trips.csv", "--methods", "uniform", *grids)
    assert ran.code == 0, ran.err
    # A mean of Ḡ over both would be of tiles of two sizes.
    head, *lines = ran.out.partition("\n\n")[0].splitlines()
    assert head.split() == ["method", "input", "Ḡ", "E", "D", "S", "seconds"]
    assert [line.split()[1] for line in lines] == ["grid:2km", "grid:4km"]
    assert "Means over 1 of 1 matrix with grid:2km and 1 of 1 matrix with grid:4km. Seconds" in ran.out
    trips = str(tmp_path / "trips.csv")
    found = crowdveil.compare([trips, trips], ["uniform"], zones=["grid:2km", "grid:4km"], step="all", k=3)
    assert [run.input for run in found.rows] == ["trips 1", "trips 2"]
