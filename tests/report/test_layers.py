"""Classes of maps: at most seven, several colors where values differ, and every value in the class that its label names."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.report import layers


def test_usual_classes_stay_where_they_differ() -> None:
    shade = layers.by_size("inflation", "Tiles", np.array([1.0, 3.0, 9.0, 40.0]))
    assert list(shade.labels) == list(layers.SIZES[1]) and shade.classes.tolist() == [0, 2, 4, 6] and not shade.uniform


@pytest.mark.parametrize("make", [layers.by_size, layers.by_share])
def test_a_map_of_one_color_gets_classes_of_its_own(make: object) -> None:
    values = np.linspace(0.9, 1.0, 60)
    shade = make("x", "X", values)  # type: ignore[operator]
    assert len(np.unique(shade.classes)) >= 5 and not shade.uniform
    assert np.all(np.diff(shade.classes) >= 0), "larger values are in higher classes"


def test_equal_values_are_named_and_not_drawn() -> None:
    assert layers.by_size("inflation", "Tiles", np.ones(9)).uniform == "1"
    assert layers.by_share("unpublished", "Share", np.ones(9)).uniform == "85–100 %"
    assert not layers.by_share("unpublished", "Share", np.full(9, np.nan)).uniform


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_every_value_has_a_class_that_begins_at_most_there(values: list[float]) -> None:
    shade = layers.by_share("x", "X", np.array(values))
    assert len(shade.least) == len(shade.labels) <= 7
    for value, number in zip(values, shade.classes.tolist(), strict=True):
        above = number + 1 < len(shade.least)
        assert (number == 0 or shade.least[number] <= value) and (not above or value < shade.least[number + 1])
