from __future__ import annotations

from collections import Counter

import numpy as np
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from crowdveil import testing
from crowdveil.model.arrays import Ints, row_slices
from crowdveil.model.flows import Flows
from crowdveil.solve.od.noisy_volumes import kept_trips

KEY = [11, 22, 33, 44]
Rows = list[tuple[int, int, int, int]]
"""Person, step, origin, destination."""


def _rows(data: Flows) -> Rows:
    assert data.person_offsets is not None and data.person_ids is not None
    row = row_slices(data.person_offsets)
    columns = (data.person_ids, data.step[row], data.origin[row], data.destination[row])
    return list(zip(*(c.tolist() for c in columns), strict=True))


def _flows(data: Flows, rows: Rows) -> Flows:
    """Return flows of these rows over the same zones and steps."""
    cells = sorted({row[1:] for row in rows})
    people = [sorted({p for p, *cell in rows if tuple(cell) == at}) for at in cells]
    sizes = np.array([len(p) for p in people], np.int64)
    step = np.array([c[0] for c in cells], np.int64)
    return Flows(
        data.zones, data.t, np.searchsorted(step, np.arange(data.steps + 1)),
        np.array([c[1] for c in cells], np.int32), np.array([c[2] for c in cells], np.int32), sizes, sizes,
        "people", data.step_s, data.tz, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.array([p for of in people for p in of], np.int64),
    )  # fmt: skip


def _kept(data: Flows, limit: int, whole: bool) -> Counter[tuple[int, int, int]]:
    trips = kept_trips(data, limit, KEY, whole_release=whole)
    cells = zip(data.step.tolist(), data.origin.tolist(), data.destination.tolist(), strict=True)
    return Counter({cell: n for cell, n in zip(cells, trips.tolist(), strict=True) if n})


@examples(150)
@given(data=testing.flows(), limit=st.integers(1, 3), whole=st.booleans())
def test_every_person_keeps_the_limit_or_all(data: Flows, limit: int, whole: bool) -> None:
    """The twin of the number of trips: people one by one, with sets."""
    assume(data.person_ids is not None)
    flows: dict[tuple[int, int], set[tuple[int, int, int]]] = {}
    for person, *cell in _rows(data):
        flows.setdefault((person, 0 if whole else cell[0]), set()).add((cell[0], cell[1], cell[2]))
    kept = _kept(data, limit, whole)
    assert sum(kept.values()) == sum(min(limit, len(of)) for of in flows.values())
    assert all(n <= sum(cell in of for of in flows.values()) for cell, n in kept.items())


@examples(80)
@given(data=testing.flows(), limit=st.integers(1, 3), whole=st.booleans(), pick=st.integers(0, 1000))
def test_one_person_changes_the_limit_at_most(data: Flows, limit: int, whole: bool, pick: int) -> None:
    """The sensitivity that the noise is for: the attacker compares volumes with and without a person, at the same key."""
    assume(data.person_ids is not None)
    rows = _rows(data)
    person = rows[pick % len(rows)][0]
    step = rows[pick % len(rows)][1]
    rest = [row for row in rows if row[0] != person or (not whole and row[1] != step)]
    with_person, without = _kept(data, limit, whole), _kept(_flows(data, rest), limit, whole)
    assert all(with_person[cell] >= n for cell, n in without.items())
    assert sum(with_person.values()) - sum(without.values()) <= limit


@examples(80)
@given(data=testing.flows(), limit=st.integers(1, 3), whole=st.booleans(), seed=st.integers(0, 99))
def test_ids_do_not_matter(data: Flows, limit: int, whole: bool, seed: int) -> None:
    assume(data.person_ids is not None)
    new: Ints = np.random.default_rng(seed).permutation(100)
    renamed = [(int(new[person]), *cell) for person, *cell in _rows(data)]
    assert _kept(data, limit, whole) == _kept(_flows(data, renamed), limit, whole)


def test_equal_people_are_drawn_apart() -> None:
    """Where a thousand commuters make the same two trips, about half of each is kept, and not all of one."""
    zones = testing.Zones.from_ids(["a", "b"])
    people = np.arange(1000)
    data = Flows(
        zones, np.array([0]), np.array([0, 2]), np.array([0, 1]), np.array([1, 0]), np.array([1000, 1000]),
        np.array([1000, 1000]), "people", 3600, "UTC", np.array([0, 1000, 2000]), np.concatenate([people, people]),
    )  # fmt: skip
    kept = kept_trips(data, 1, KEY, whole_release=False)
    assert kept.sum() == 1000 and np.all(np.abs(kept - 500) < 80)
