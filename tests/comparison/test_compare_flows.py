"""`crowdveil.compare` and `crowdveil.sweep`: the numbers are those of releases, and the rule is the one that is stated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv as pacsv
import pytest

import crowdveil
from crowdveil.comparison import plots
from crowdveil.comparison.candidates import Candidate, without_k
from crowdveil.comparison.flows import sample_matrices, spread_evenly
from crowdveil.comparison.plots import front
from crowdveil.comparison.sweep import recommend
from crowdveil.errors import InputError, OutputError, ParameterError
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import row_slices
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones
from crowdveil.registry import find_method
from crowdveil.synth.profiles import make_profile


@pytest.fixture(scope="module")
def flows() -> Flows:
    """Three matrices of few flows, with trees."""
    made = make_profile("nyc", np.random.default_rng(3), 3)
    return made.where(np.random.default_rng(4).random(len(made)) < 0.3)


def test_numbers_are_those_of_a_release(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.compare(flows, ["oigh", "joint:splits=dyadic"], k=5, suppress="20%", seed=1)
    rows = {row["method"]: row for row in found.table.to_pylist()}
    for label, name, more in (("oigh", "oigh", {}), ("joint:splits=dyadic", "joint", {"splits": "dyadic"})):
        release = crowdveil.anonymize(flows, tmp_path / name, method=name, k=5, suppress=0.2, seed=1, **more).folder
        measured = crowdveil.measure(flows, release)
        for symbol in ("Ḡ", "E", "D", "S"):
            scores = measured[symbol]
            assert rows[label][scores.measure.name] == pytest.approx(float(scores.mean))
            values = [row["value"] for row in found.values.to_pylist()
                      if (row["method"], row["measure"]) == (label, scores.measure.name)]  # fmt: skip
            assert values == pytest.approx(scores.by_step.tolist())
        assert rows[label]["seconds"] > 0 and rows[label]["remark"] is None


def test_methods_that_keep_no_budget_are_marked(flows: Flows) -> None:
    found = crowdveil.compare(flows, ["joint", "mondrian", "suppression", "atg-soft", "laplace", "glove"])
    remarks = dict(zip(found.table["method"].to_pylist(), found.table["remark"].to_pylist(), strict=True))
    assert remarks["joint"] is None and remarks["mondrian"] is None
    assert remarks["suppression"] == remarks["atg-soft"] == "has no budget"
    assert remarks["laplace"] == "noise in place of k, has no budget" and remarks["glove"] == "rows overlap"
    glove = next(row for row in found.table.to_pylist() if row["method"] == "glove")
    assert all(glove[name] is not None for name in ("generalization", "reconstruction-error", "suppressed"))


def test_all_methods_where_none_are_named(flows: Flows) -> None:
    one = flows.at_steps(np.array([0]))
    found = crowdveil.compare(one.where(np.arange(len(one)) < 300))
    labels = [outcome.label for outcome in found.outcomes]
    assert labels[:3] == ["joint", "joint:splits=dyadic", "atg-dual"] and "suppression" in labels
    assert "simple-generalization" not in labels
    assert "grid" in found.left_out["uniform"]


def test_what_is_named_and_cannot_run_is_left_out(flows: Flows, monkeypatch: pytest.MonkeyPatch) -> None:
    found = crowdveil.compare(flows, ["joint", "uniform"])
    assert [outcome.label for outcome in found.outcomes] == ["joint"]
    assert "grid" in found.left_out["uniform"]
    with pytest.raises(InputError, match="grid"):
        crowdveil.compare(flows, ["uniform"])
    plain = Candidate.run

    def run(self: Candidate, *arguments: Any) -> Any:
        if self.method.name == "oigh":
            raise MemoryError
        return plain(self, *arguments)

    monkeypatch.setattr(Candidate, "run", run)
    found = crowdveil.compare(flows, ["oigh", "joint"])
    assert [outcome.label for outcome in found.outcomes] == ["joint"]
    assert "more memory" in found.left_out["oigh"]


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
    found = crowdveil.compare(flows, ["glove"]).outcomes[0]
    for step in range(flows.steps):
        rebuilt, matrix = _dense(flows, release, step)
        assert found.by_step["E"][step] == pytest.approx(np.abs(rebuilt - matrix).sum() / matrix.sum())
        shares = rebuilt / rebuilt.sum() - matrix / matrix.sum()
        assert found.by_step["D"][step] == pytest.approx(np.abs(shares).sum())


def test_a_sample_is_spread_evenly() -> None:
    assert spread_evenly(10, 4).tolist() == [0, 3, 6, 9]
    assert spread_evenly(10, 1).tolist() == [0] and spread_evenly(3, 10).tolist() == [0, 1, 2]
    assert len(spread_evenly(1000, None)) == 10 and spread_evenly(1000, None)[-1] == 999
    assert len(np.unique(spread_evenly(101, 100))) == 100


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


def test_the_rule_on_tables_made_by_hand() -> None:
    five, ten, twenty = [(5, 8.1), (10, 9.0)], [(5, 7.9), (10, 15.7), (20, 15.9)], [(5, 4.0), (10, 4.1)]
    table = [(k, s, error) for s, errors in ((0.05, five), (0.1, ten), (0.2, twenty)) for k, error in errors]
    # 5 % is too coarse (8.1 > 8), 10 % is not (7.9); there k = 10 is bearable (15.7 <= 15.8), and k = 20 is not.
    assert recommend(table) == 3
    assert recommend([(5, None, 2.0), (10, None, 4.0), (20, None, 4.1)]) == 1
    assert recommend([(5, 0.1, float("nan")), (10, 0.1, 3.0)]) == 1
    assert recommend([(5, 0.1, float("nan"))]) is None


def test_a_sweep_has_a_row_for_each_pair(flows: Flows, tmp_path: Path) -> None:
    found = crowdveil.sweep("joint", flows, tmp_path / "s", k=[10, 5], suppress=["20%", 0.1], sample=2)
    table = found.table.to_pylist()
    assert [(row["k"], row["suppress"]) for row in table] == [(5, 0.1), (10, 0.1), (5, 0.2), (10, 0.2)]
    wanted = crowdveil.compare(flows, ["joint"], k=10, suppress=0.2, sample=2)
    assert wanted.flows.steps == 2
    assert table[3]["generalization"] == wanted.outcomes[0].mean("Ḡ")
    best = found.recommended
    assert best is not None and found.recommendation().startswith(f"Take k = {best.k} and suppress = ")
    assert pacsv.read_csv(tmp_path / "s" / "sweep.csv").to_pylist() == table
    assert (tmp_path / "s" / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_large_matrices_are_sampled_more_thinly() -> None:
    assert len(spread_evenly(100, None, 1000)) == 10
    assert len(spread_evenly(100, None, 100_000_000)) == 2
    assert len(spread_evenly(100, None, 10**12)) == 1
    assert len(spread_evenly(100, 7, 10**12)) == 7


def test_a_method_without_a_budget_is_weighed_by_what_it_suppresses_too(flows: Flows) -> None:
    found = crowdveil.sweep("suppression", flows, k=[2, 50])
    assert found.weighed == "E" and found.recommended is not None and found.recommended.k == 2
    assert "E of every larger k is more than twice" in found.recommendation()
    assert "(k = 50 has" in found.recommendation()


def test_files_of_a_comparison_are_confidential_and_their_owners_alone(flows: Flows, tmp_path: Path) -> None:
    crowdveil.compare(flows, ["suppression"], tmp_path / "c")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "c").iterdir()}
    assert set(modes.values()) == {0o600} and (tmp_path / "c").stat().st_mode & 0o777 == 0o700
    assert set(modes) == {"CONFIDENTIAL.txt", "compare.csv", "summary.csv", "ratios.png", "coarseness-and-loss.png"}
    assert "confidential" in (tmp_path / "c" / "CONFIDENTIAL.txt").read_text()


def test_the_front_is_what_nothing_else_beats_in_both() -> None:
    points = [(1.0, 5.0), (1.0, 4.0), (2.0, 4.0), (3.0, 2.0), (4.0, 3.0), (5.0, 1.0)]
    assert front(points) == [(1.0, 4.0), (3.0, 2.0), (5.0, 1.0)]
    assert front([]) == []
    assert without_k("joint:splits=dyadic:k=5") == "joint:splits=dyadic" and without_k("joint") == "joint"


def test_lines_of_methods_go_through_their_k_and_the_front_holds_like_with_like(flows: Flows) -> None:
    from matplotlib.figure import Figure

    found = crowdveil.compare(
        flows, ["oigh:k=5", "oigh:k=20", "joint:k=5", "joint:k=20", "glove:k=20", "laplace"], k=20
    )
    drawn: list[Figure] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", lambda figure, file: drawn.append(figure))
        plots.error_by_k(found, Path("not-written.png"))
    lines = {line.get_label(): [tuple(point) for point in line.get_xydata()] for line in drawn[0].axes[0].lines}
    joint, oigh = ([(o.k, o.mean("E")) for o in found.outcomes if o.label.startswith(m)] for m in ("joint", "oigh"))
    assert lines["oigh"] == oigh and lines["joint"] == joint
    assert lines["glove (rows overlap)"] == [(20, found.outcomes[4].mean("E"))]
    # oigh is worse than joint, glove has a remark, laplace no k.
    assert lines["Pareto front (methods without a remark)"] == joint[::-1] and len(lines) == 4


def test_nothing_is_run_for_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match="exists"):
        crowdveil.compare("no-such-file.csv", output=tmp_path)
    with pytest.raises(OutputError, match="not replaced"):
        crowdveil.sweep("joint", "no-such-file.csv", tmp_path, overwrite=True)


def test_budgets_can_be_numbers_of_trips(flows: Flows) -> None:
    found = crowdveil.sweep("oigh", flows, k=[5], suppress_trips=[20, "4"], sample=1)
    assert found.table["suppress_trips"].to_pylist() == [4, 20] and "suppress" not in found.table.column_names
    assert found.lines()[1].split()[:3] == ["5", "4", "trips"]
    wanted = crowdveil.compare(flows, ["oigh", "oigh:suppress=1%"], k=5, suppress_trips=20, sample=1)
    assert wanted.table["suppressed"][0] == found.table["suppressed"][1]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: crowdveil.compare(f, ["no-such"]), "no method no-such"),
        (lambda f: crowdveil.compare(f, ["simple-generalization"]), "name others"),
        (lambda f: crowdveil.compare(f, ["joint:color=red"]), "joint: color: there is no such parameter"),
        (lambda f: crowdveil.compare(f, ["joint:splits"]), "as in joint:splits=dyadic"),
        (lambda f: crowdveil.compare(f, []), "at least one"),
        (lambda f: crowdveil.compare(f, k=1), "k: wanted"),
        (lambda f: crowdveil.compare(f, sample=0), "sample: wanted"),
        (lambda f: crowdveil.sweep("joint", f, k=[]), "k: wanted values"),
        (lambda f: crowdveil.sweep("joint", f, suppress=[]), "suppress: wanted values"),
        (lambda f: crowdveil.sweep("joint", f, k=["x"]), "joint: k: wanted"),
        (lambda f: crowdveil.sweep("suppression", f, suppress=["5%"]), "no budget"),
        (lambda f: crowdveil.sweep("joint", f, suppress=[10]), "a share such as 10% .*suppress_trips"),
        (lambda f: crowdveil.sweep("joint", f, suppress=["5%"], suppress_trips=[3]), "got both"),
        (lambda f: crowdveil.sweep("suppression", f, suppress_trips=[3]), "no budget; omit suppress_trips"),
        (lambda f: crowdveil.compare(f, ["joint"], suppress=10), "a share such as 10% .*suppress_trips"),
        (lambda f: crowdveil.sweep("laplace", f), "no k"),
        (lambda f: crowdveil.sweep("joint:k=5", f), "is swept"),
    ],
)
def test_what_is_wrong_is_reported_in_one_sentence(flows: Flows, call: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=says) as error:
        call(flows)
    assert str(error.value).count(". ") == 0


def test_a_k_beyond_the_data_is_refused(flows: Flows) -> None:
    with pytest.raises(InputError, match="choose a smaller k"):
        crowdveil.compare(flows, ["joint"], k=10**9)
    with pytest.raises(InputError, match="choose a smaller k"):
        crowdveil.sweep("joint", flows, k=[5, 10**9])
    with pytest.raises(InputError, match="no flow"):
        crowdveil.compare(flows.where(np.zeros(len(flows), np.bool_)), ["joint"])


def test_steps_below_k_are_not_compared_on() -> None:
    """Every method suppresses them whole, so that they would only blur the means."""
    zones = Zones.from_ids(["a", "b"])
    t, n = np.arange(4), np.zeros(4, np.int32)
    flows = Flows.from_rows(zones, t, n, n, np.array([30, 9, 10, 40]), step_s=3600)
    assert sample_matrices(flows, None, 10).t.tolist() == [0, 2, 3]
    assert sample_matrices(flows, 2, 10).t.tolist() == [0, 3]
    assert sample_matrices(flows, None, 100).steps == 4  # a k that is too large is reported by each method
