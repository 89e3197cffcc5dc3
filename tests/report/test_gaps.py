"""Hours that nothing was published of are gaps in pictures, never zeros."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_flows import written

from crowdveil.analysis.calendar import Slots
from crowdveil.io.matplotlib_figure import new_figure
from crowdveil.report import flow_page, flow_picture, svg_figures
from crowdveil.report.interval_charts import thinned
from crowdveil.report.plots import analyses, profiles
from crowdveil.report.plots.drawing import line_with_gaps

HOUR = 3600


def test_a_step_without_a_row_is_missing_and_not_zero() -> None:
    found = profiles.trips_by_step(np.array([0, 0, 2]), np.array([3, 4, 5]), 4)
    assert np.array_equal(found, [7.0, np.nan, 5.0, np.nan], equal_nan=True)


@given(st.sets(st.integers(0, 60), min_size=3, max_size=40), st.sampled_from([900, 3600, 86400]))
def test_steps_that_are_not_listed_come_back_as_gaps(there: set[int], step_s: int) -> None:
    t = 1_700_000_000 + step_s * np.array(sorted(there), np.int64)
    every, place = flow_picture.every_step(t)
    assert np.array_equal(every[place], t) and np.all(np.diff(every) > 0)
    if np.median(np.diff(t)) == step_s:
        assert np.array_equal(every, np.arange(t[0], t[-1] + 1, step_s))


def test_months_without_data_are_one_gap_and_are_not_summed_over() -> None:
    """Of three months in two years, each day is a step; of a year and a half, days are summed, but none across a gap."""
    day = np.r_[0:31, 300:331, 700:731]
    labels, place, how = flow_picture._label_steps(86400 * day, np.arange(93), "UTC")
    assert len(labels) == 95 and how == "" and np.array_equal(place, np.arange(93) + np.repeat([0, 1, 2], 31))
    assert labels[31:33] == ["none published until 1970-10-28 00:00", "1970-10-28 00:00"] and labels[63].startswith(
        "none"
    )
    day = np.r_[0:151, 400:701]
    labels, place, how = flow_picture._label_steps(86400 * day, np.arange(452), "UTC")
    assert how == "every 3 time steps are summed (452 in total)" and len(labels) == 51 + 1 + 101
    assert (
        place[150] == 50
        and place[151] == 52
        and labels[50:52] == ["from 1970-05-31 00:00", "none published until 1971-02-05 00:00"]
    )
    hours = 3600 * np.flatnonzero(np.arange(3000) % 24 < 2)[:180]  # so many gaps that they are left out
    labels, place, how = flow_picture._label_steps(hours, np.arange(180), "UTC")
    assert len(labels) == 180 and np.array_equal(place, np.arange(180)) and how == ""
    weekdays = np.flatnonzero(np.arange(2000) % 7 < 5)
    labels, place, how = flow_picture._label_steps(86400 * weekdays, np.arange(len(weekdays)), "UTC")
    assert len(labels) <= flow_picture.MAX_STEPS and place[-1] == len(labels) - 1 and "summed" in how


def test_the_curve_of_a_report_has_gaps_for_steps_without_flows() -> None:
    """Of five hours the second is not listed, and of the third nothing is published."""
    t = 1_700_000_000 + 3600 * np.array([0, 2, 3, 4])
    every, values = flow_page._with_gaps(t, np.array([7.0, 0.0, 5.0, 6.0]))
    assert np.array_equal(every, 1_700_000_000 + 3600 * np.arange(5))
    assert np.array_equal(values, [7.0, np.nan, np.nan, 5.0, 6.0], equal_nan=True)
    shown, _ = thinned(np.arange(2500), np.tile(values, 500), "UTC")
    assert len(shown) <= 1000 and np.nanmin(shown) >= 5, "a mean of known values is not lowered by gaps"


def test_the_line_of_a_report_is_broken_where_values_are_missing() -> None:
    svg = svg_figures.line(np.array([1.0, 2.0, np.nan, 4.0, np.nan, np.nan, 7.0, 8.0]), [""] * 8, "title", "x", "y")
    assert svg.count("<polyline") == 2 and svg.count('class="dot"') == 1 and svg.count('class="gap"') == 2
    assert "nan" not in svg
    whole = svg_figures.line(np.array([1.0, 2.0, 3.0]), [""] * 3, "title", "x", "y")
    assert whole.count("<polyline") == 1 and "gap" not in whole


def test_hours_without_values_are_hatched(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    slots = Slots("day", 3600, "UTC", np.ones(24, np.int64))
    values = np.full(24, np.nan)
    values[8:12], values[15] = [1, 2, 3, 2], 5.0
    figure = new_figure(5, 2)
    axis = figure.subplots()
    line_with_gaps(axis, analyses._hours(slots), values, color="#000000")
    analyses._hatched(axis, slots, np.isfinite(values))
    assert len(axis.patches) == 3 and all(patch.get_hatch() for patch in axis.patches)
    line, dots = axis.lines
    assert np.isnan(line.get_ydata()).sum() == 19 and dots.get_xdata().tolist() == [15.0]
    figure.savefig(tmp_path / "gaps.png")


@given(st.lists(st.tuples(st.integers(0, 2), *[st.sampled_from(["a", "b", "c", "ab"])] * 2), max_size=12, unique=True))
def test_pairs_in_no_published_flow_are_counted(drawn: list[tuple[int, str, str]]) -> None:
    """Of flows that do not overlap, as in a release with the guarantee of disjoint flows."""
    tiles, seen, rows = {"a": "a", "b": "b", "c": "c", "ab": "ab"}, set(), []
    for step, o, d in drawn:
        pairs = {(step, x, y) for x in tiles[o] for y in tiles[d]}
        if not pairs & seen:
            seen |= pairs
            rows.append((HOUR * step, o, d, 10, 10))
    release = written(rows, [(HOUR * step, 10, None) for step in range(3)])
    names = release.tile_names
    found = flow_picture._unpublished(release, None)
    every = [(step, x, y) for step in range(3) for x in names for y in names]
    for tile, name in enumerate(names):
        own = [(pair, end) for pair in every for end in (1, 2) if pair[end] == name]
        assert found[tile] == pytest.approx(np.mean([pair not in seen for pair, _ in own]))
