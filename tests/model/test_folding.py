"""Folded time: sums of plain loops, people once, hours of the clock."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

import crowdveil
from crowdveil import testing
from crowdveil.errors import InputError, ParameterError
from crowdveil.model.flows import Flows, fold_steps

WEEK = 7 * 86400


def _at(text: str, tz: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz)).timestamp())


@settings(max_examples=tries(40), deadline=None)
@given(data=testing.flows(max_steps=4), far=st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_sums_are_those_of_a_plain_loop(data: Flows, far: list[int]) -> None:
    hours = np.array([3600 * i + WEEK * far[i] for i in range(data.steps)]) + 4 * 86400
    order = np.argsort(hours, kind="stable")
    data = replace(data.at_steps(np.arange(data.steps)), step_s=3600, tz="UTC", t=hours[order])
    folded = fold_steps(data, "1w")
    first = int(hours.min() - 4 * 86400) // WEEK * WEEK + 4 * 86400
    trips: dict[tuple[int, int, int], int] = defaultdict(int)
    people: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for i in range(len(data)):
        t = first + (int(data.t[data.step[i]]) - 4 * 86400) % WEEK
        key = t, int(data.origin[i]), int(data.destination[i])
        trips[key] += int(data.volume[i])
        if data.person_ids is not None and data.person_offsets is not None:
            people[key] |= {*data.person_ids[data.person_offsets[i] : data.person_offsets[i + 1]].tolist()}
    found = {
        (int(folded.t[folded.step[i]]), int(folded.origin[i]), int(folded.destination[i])): i
        for i in range(len(folded))
    }
    assert {key: int(folded.volume[i]) for key, i in found.items()} == dict(trips)
    if people:
        assert {key: int(folded.people[i]) for key, i in found.items()} == {k: len(p) for k, p in people.items()}


def test_people_in_several_weeks_count_once_and_hours_are_those_of_the_clock(tmp_path: Path, command: Any) -> None:
    rows = [("a", "2024-03-28T08:10"), ("b", "2024-03-28T08:20"), ("a", "2024-04-04T08:30"), ("c", "2024-04-04T08:40")]
    path = tmp_path / "trips.csv"
    path.write_text("user,origin,destination,time\n" + "".join(f"{user},x,y,{t}\n" for user, t in rows))
    # Clocks changed in between.
    target = tmp_path / "flows.csv"
    run = command("flows", path, "--step", "1h", "--tz", "Europe/Paris", "--fold", "1w", "-o", target)
    assert run.code == 0, run.err
    header, line = target.read_text().splitlines()
    assert header.split(",")[-2:] == ["volume", "people"] and line.endswith(",4,3")
    assert "08:00" in line and "2024-03-28" in line


def test_what_cannot_be_folded() -> None:
    flows = _flows()
    for period in ("2h", "all", "week", "0d"):
        with pytest.raises(ParameterError, match="whole days"):
            fold_steps(flows, period)
    with pytest.raises(ParameterError, match="whole time steps"):
        fold_steps(replace(flows, step_s=7 * 3600), "1d")
    with pytest.raises(InputError, match="no times"):
        fold_steps(replace(flows, step_s=None), "1d")


def _flows() -> Flows:
    zones = crowdveil.Zones.from_ids(["x", "y"])
    zero = np.zeros(1, np.int32)
    return Flows.from_rows(zones, np.array([_at("2024-04-01", "UTC")]), zero, zero + 1, np.array([3]), step_s=3600)
