"""Figures and tables of papers show the numbers of a comparison."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crowdveil
from crowdveil.errors import ParameterError
from crowdveil.experiments.figures import SIZES, draw_ratios, draw_windows, matrix_ratios, target_lines
from crowdveil.experiments.movers import make_movers
from crowdveil.experiments.network import street_grid
from crowdveil.experiments.profiles import make_profile
from crowdveil.model.flows import Flows


@pytest.fixture(scope="module")
def flows() -> Flows:
    """Three matrices of few flows, with trees."""
    made = make_profile("nyc", np.random.default_rng(3), 3)
    return made.where(np.random.default_rng(4).random(len(made)) < 0.3)


def test_ratios_are_those_of_the_same_matrices(flows: Flows) -> None:
    found = crowdveil.compare([flows, flows.at_steps(np.array([0]))], ["suppression", "oigh"], k=5)
    first, oigh = found.runs[:2]
    ratios = matrix_ratios(oigh, first, "E")
    assert ratios == pytest.approx(oigh.values["E"] / first.values["E"]) and len(ratios) == 3
    made = draw_ratios(found)
    assert made.confidential and len(made.panels) == 5
    assert [text.get_text() for text in made.panels[0].get_yticklabels()] == [
        f"input {n}, oigh:k=5:suppress=10%" for n in (1, 2)
    ]
    with pytest.raises(ParameterError, match="two methods"):
        draw_ratios(crowdveil.compare(flows, ["suppression"], k=5))


def test_methods_without_a_budget_are_drawn_next_to_one_with_a_budget(flows: Flows) -> None:
    made = draw_ratios(crowdveil.compare(flows, ["atg-dual", "mondrian", "atg-soft"], k=10))
    labels = ["mondrian:k=10", "atg-soft:k=10"]
    assert [text.get_text() for text in made.panels[0].get_yticklabels()] == labels
    made.figure.draw_without_rendering()
    for axis in made.panels:
        texts = [text for text in axis.get_xticklabels(which="both") if text.get_text()]
        assert texts and all(float(text.get_text()) > 0 for text in texts)
        extents = [text.get_window_extent() for text in texts]
        assert all(left.x1 < right.x0 for left, right in pairwise(extents))


def test_runs_have_a_ratio_to_each_run_of_the_first_method_that_fits(flows: Flows) -> None:
    found = crowdveil.compare(flows, ["atg-dual", "mondrian:k=5", "suppression:k=7"], k=5, suppress=["10%", "20%"])
    made = draw_ratios(found)
    assert [text.get_text() for text in made.panels[0].get_yticklabels()] == [
        f"mondrian:k=5:k=5 / atg-dual:k=5:suppress={budget}" for budget in ("10%", "20%")
    ]
    assert "same parameters: suppression:k=7:k=7." in made.figure.get_supxlabel()
    with pytest.raises(ParameterError, match="No other method ran on the same input"):
        draw_ratios(crowdveil.compare(flows, ["atg-dual", "suppression:k=7"], k=5))


def test_the_best_target_has_the_nearest_sizes(flows: Flows) -> None:
    found = crowdveil.compare(
        flows, ["atg-dual"], k=[5, 15], vary={"v_target": [30, 200, 3000]}, measures=",".join(SIZES)
    )
    for line, k in zip(target_lines(found), (5, 15), strict=True):
        apart = {r.varied["v_target"]: abs(r.mean(SIZES[0]) - r.mean(SIZES[1])) for r in found.runs if r.k == k}
        assert line.startswith(f"k = {k}: v_target = {min(apart, key=lambda target: apart[target])}, ")
    with pytest.raises(ParameterError, match="v_target"):
        target_lines(crowdveil.compare(flows, ["suppression"], k=5))


def test_windows_have_a_panel_for_each_k_and_measure(command: Any, tmp_path: Path) -> None:
    movers = make_movers(street_grid(1, side=8), 40, seed=2)
    measures = "sid:queries=100:windows_s=0+300,rmse"
    found = crowdveil.compare(movers, ["microaggregation", "swapmob"], k=[2, 4], measures=measures)
    made = draw_windows(found)
    assert len(made.panels) == 2 and [len(axis.lines) for axis in made.panels] == [2, 2]
    run = found.runs[0]
    values = [run.mean(column.key) for column in found.columns[:2]]
    assert made.panels[0].lines[0].get_ydata().tolist() == values
    crowdveil.write_trajectories(movers, tmp_path / "movers.csv")
    options = ("--methods", "microaggregation", "-k", "2", "--measures", "sid:queries=100:windows_s=0+300")
    ran = command("experiment", "figure", "windows", tmp_path / "movers.csv", *options, "-o", tmp_path / "w.png")
    assert ran.code == 0, ran.err
    assert (tmp_path / "w.png").stat().st_mode & 0o777 == 0o600 and "confidential" in ran.out
    assert command("experiment", "figure", "windows", tmp_path / "movers.csv", *options).code == 2
