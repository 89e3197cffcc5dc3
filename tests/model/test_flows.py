"""The model of flows: what it takes, what it refuses."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil.errors import InputError
from crowdveil.model import flows as model_flows
from crowdveil.model.flows import Flows
from crowdveil.model.zones import Zones

unhurried = settings(deadline=None, max_examples=tries(60))
ZONES = Zones.from_ids(["a", "b", "c"])
cells = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 2)),
    st.tuples(st.integers(1, 99), st.integers(1, 99)),
    max_size=20,
)
Cells = dict[tuple[int, int, int], tuple[int, int]]


def flows_of(volume: Cells, people: bool = True) -> Flows:
    key = np.array(list(volume), np.int64).reshape(-1, 3)
    value = np.array(list(volume.values()), np.int64).reshape(-1, 2)
    return Flows.from_rows(
        ZONES, key[:, 0] * 3600, key[:, 1], key[:, 2], value[:, 0], value[:, 1] if people else None, step_s=3600
    )


def rows(flows: Flows) -> Cells:
    t = (flows.t[flows.step] // 3600).tolist()
    keys = zip(t, flows.origin.tolist(), flows.destination.tolist(), strict=True)
    return dict(zip(keys, zip(flows.volume.tolist(), flows.people.tolist(), strict=True), strict=True))


@unhurried
@given(cells, st.randoms())
def test_rows_in_any_order_are_sorted(volume: Cells, random: Any) -> None:
    shuffled = list(volume.items())
    random.shuffle(shuffled)
    flows = flows_of(dict(shuffled))
    assert rows(flows) == volume
    assert list(rows(flows)) == sorted(volume)
    assert flows.steps == len({k[0] for k in volume})
    assert flows.total == sum(v for v, _ in volume.values())
    assert flows.total_people == sum(p for _, p in volume.values())
    assert flows.k_unit == "people"
    assert len(flows) == len(volume)


def test_without_people_trips_are_the_group_size() -> None:
    flows = flows_of({(0, 0, 1): (5, 2)}, people=False)
    assert flows.people.tolist() == [5]
    assert flows.k_unit == "trips"


@unhurried
@given(cells, st.data())
def test_rows_are_left_out_and_steps_stay(volume: Cells, data: st.DataObject) -> None:
    flows = flows_of(volume)
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(flows), max_size=len(flows))), bool)
    kept = flows.where(keep)
    assert rows(kept) == {k: v for (k, v), stays in zip(sorted(volume.items()), keep, strict=True) if stays}
    assert kept.t.tolist() == flows.t.tolist()


@unhurried
@given(cells, st.data(), st.integers(1, 60), st.booleans())
def test_a_suppressed_total_is_given_only_where_k_made_it_for_certain(
    volume: Cells, data: st.DataObject, k: int, people: bool
) -> None:
    flows = flows_of(volume, people)
    suppressed = np.array(data.draw(st.lists(st.booleans(), min_size=len(flows), max_size=len(flows))), bool)
    wanted, totals = [], []
    for step in sorted({key[0] for key in volume}):
        lost = [volume[key] for key, out in zip(sorted(volume), suppressed, strict=True) if out and key[0] == step]
        total = sum(v for v, _ in lost)
        totals.append(total)
        crowd = max((p for _, p in lost), default=0) if people else total
        wanted.append(total if total == 0 or min(total, crowd) >= k else -1)
    assert flows.suppressed_totals(suppressed, np.array(totals), k, -1).tolist() == wanted


GOOD: dict[str, Any] = {
    "t": [0, 3600], "offsets": [0, 2, 3], "origin": [0, 1, 0], "destination": [1, 0, 1], "volume": [1, 2, 3], "people": [1, 2, 3],
}  # fmt: skip


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("volume", [0, 2, 3], "volumes must be above zero"), ("volume", [1, 2], "column volume has 2 rows instead of 3"),
        ("people", [1, -2, 3], "people must be above zero"), ("origin", [0, 3, 0], "not one of the 3 zones"),
        ("destination", [1, -1, 1], "not one of the 3 zones"), ("origin", [1, 0, 0], "must be sorted"),
        ("origin", [0, 0, 0], "must be sorted|each pair once"), ("offsets", [0, 2, 4], "offsets must rise"),
        ("offsets", [0, 3, 2], "offsets must rise"), ("offsets", [1, 2, 3], "offsets must rise"),
        ("t", [0], "one time for each step"),
        ("t", [3600, 0], "in order of time"), ("t", [0, 0], "in order of time"),
    ],
)  # fmt: skip
def test_what_is_out_of_order_is_refused(column: str, values: list[int], says: str) -> None:
    changed = {**GOOD, column: values}
    if column == "origin" and values == [0, 0, 0]:
        changed["destination"] = [1, 1, 1]
    Flows(ZONES, **{k: np.array(v) for k, v in GOOD.items()})
    with pytest.raises(InputError, match=says):
        Flows(ZONES, **{k: np.array(v) for k, v in changed.items()})


def test_a_pair_that_stands_twice_is_refused() -> None:
    with pytest.raises(InputError, match="each pair once"):
        Flows.from_rows(
            ZONES, np.zeros(2, np.int64), np.zeros(2, np.int32), np.zeros(2, np.int32), np.ones(2, np.int64)
        )


def test_flows_do_not_change() -> None:
    volume = np.array([1, 2, 3])
    flows = Flows(ZONES, **{**{k: np.array(v) for k, v in GOOD.items()}, "volume": volume})
    with pytest.raises(ValueError, match="read-only"):
        flows.volume[0] = 5
    assert volume.flags.writeable


@unhurried
@given(
    lengths=st.lists(st.integers(0, 5), min_size=1, max_size=6),
    piece=st.integers(1, 6),
    draw=st.data(),
)
def test_rows_must_rise_inside_each_step(lengths: list[int], piece: int, draw: st.DataObject) -> None:
    """Against a plain look at every two neighbors, whatever pieces rows are looked at in."""
    pairs = [sorted(draw.draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))) for n in lengths]
    if draw.draw(st.booleans()):
        pairs = [draw.draw(st.permutations(step)) for step in pairs]
    flat = np.array([pair for step in pairs for pair in step], np.int64)
    rising = all(a < b for step in pairs for a, b in itertools.pairwise(step))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_flows, "_BLOCK", piece)
        made: Any = (ZONES, np.arange(len(lengths)), np.cumsum([0, *lengths]), flat // 3, flat % 3)
        ones = np.ones(len(flat), np.int64)
        if rising:
            assert len(Flows(*made, ones, ones)) == len(flat)
        else:
            with pytest.raises(InputError, match="each pair once"):
                Flows(*made, ones, ones)
