"""Advice on an empty release names only what the method and the data have."""

from __future__ import annotations

import re

import numpy as np
import pytest

from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods
from crowdveil.run.verification import _CHANGES, add_run_warnings, what_to_change


def _flows(step_s: int | None) -> Flows:
    one = np.ones(1, np.int64)
    return Flows.from_rows(Zones.from_ids(["a"]), 0 * one, 0 * one, 0 * one, one, step_s=step_s)


def _trajectories() -> Trajectories:
    made = Trajectories.__new__(Trajectories)
    object.__setattr__(made, "counts", "people")
    return made


@pytest.mark.parametrize("name", all_methods())
def test_advice_names_what_the_method_has(name: str) -> None:
    method = all_methods()[name]
    params = method.params()
    data = _flows(3600) if method.takes is Flows else _trajectories()
    notes = ReadNotes()
    add_run_warnings(method, data, params, {}, notes, seed_given=False)
    (sentence,) = [said for said in notes.messages if said.startswith("nothing could be published")]
    known = {*method.params.model_fields, *READINGS[method.takes].model_fields}
    named = {word for word in re.findall(r"[a-z]\w+_\w+|\bk\b", sentence)}
    assert named <= known, f"{named - known} are no parameters of {name}"
    assert ("smaller k" in sentence) == ("k" in method.params.model_fields)
    assert ("zones" in sentence) == ("time steps" in sentence) == (method.takes is Flows)
    assert "step" not in what_to_change(_flows(None), params) or method.takes is not Flows


def test_what_cannot_be_changed_is_not_named() -> None:
    joint = all_methods()["joint"].params
    assert what_to_change(_flows(None), joint(k=2)) == "larger zones"
    assert what_to_change(_flows(60), joint(max_area_km2=4, min_tiles=3)) == (
        "a smaller k, a smaller min_tiles, a larger max_area_km2, larger zones or longer time steps"
    )
    assert what_to_change(_trajectories(), all_methods()["swapmob"].params()) == (
        "a larger max_distance_m or a longer max_time_s"
    )


def test_every_change_is_to_a_parameter_of_some_method() -> None:
    known = {name for method in all_methods().values() for name in method.params.model_fields}
    assert set(_CHANGES) <= known
