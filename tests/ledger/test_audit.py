"""The audit of several releases against linear algebra over all sets, linear programs, and the published volumes alone."""

from __future__ import annotations

import numpy as np
import pytest
from audit_checks import check_pair, releases_of
from examples import tries
from plain_ledger import atoms_of, bounds, smallest_set

from crowdveil.errors import InputError
from crowdveil.ledger.audit import Audit, Published, Records, audit


def test_pairs_of_trips_are_audited_exactly() -> None:
    leaks = 0
    for world, made, k in releases_of(1, tries(1500), people=False):
        exists, refused = check_pair(world, made, k)
        assert exists == refused
        leaks += exists
    assert leaks > tries(1500) // 10


def test_no_small_set_of_people_is_missed() -> None:
    strict = 0
    for world, made, k in releases_of(2, tries(900), people=True):
        exists, refused = check_pair(world, made, k)
        assert refused or not exists
        if refused and not exists:
            assert audit(world.records, made[0], made[1:], k).strict
            strict += 1
    assert strict <= tries(900) // 100


@pytest.mark.parametrize("people", [False, True])
def test_releases_with_other_k(people: bool) -> None:
    """A set needs the most that one of its records does, and a record the smallest k of the releases that publish it."""
    leaks = strict = 0
    for world, made, k in releases_of(5, tries(600), people=people, other_k=True):
        ks = [int(m.k or k) for m in made]
        atoms, _ = atoms_of([m.row for m in made])
        needed = np.where(atoms >= 0, ks, 99).min(axis=1)
        exists = bool(np.any(smallest_set([m.row for m in made], *world.records)[1] < needed))
        found = audit(world.records, made[0], made[1:], k)
        assert not (exists and found.passed)
        if not exists and not found.passed:
            assert people and found.strict
            strict += 1
        for leak in found.leaks:
            assert people or leak.size < leak.needed <= max(ks)
        leaks += exists
    assert leaks > tries(600) // 20 and strict <= max(tries(600) // 100, 1)


def test_no_small_set_of_three_releases_is_missed() -> None:
    for world, made, k in releases_of(3, tries(600), people=False, releases=3):
        found = audit(world.records, made[0], made[1:], k)
        before = min(smallest_set([m.row for m in part], *world.records)[0] for part in (made[1:], made[:2], made[::2]))
        if found.passed and before >= k:
            assert smallest_set([m.row for m in made], *world.records)[0] >= k
        assert found.passed or found.leaks


def test_bounds_and_largest_volumes_are_those_of_linear_programs() -> None:
    for world, made, k in releases_of(4, tries(60), people=False):
        found = audit(world.records, made[0], made[1:], k)
        exact = bounds([m.row for m in made], world.records.volume)
        confined = sum(low > 0.5 and high < k - 0.5 for low, high in exact)
        assert found.confined == (0 if found.tier < 2 else confined)
        assert found.passed == all(high > k - 0.5 for _, high in exact)


def test_tiers() -> None:
    records = Records(np.array([5, 5, 5, 5]), None)
    halves = Published("halves", np.array([0, 0, 1, 1]))
    whole = Published("whole", np.array([0, 0, 0, 0]))
    crossed = Published("crossed", np.array([0, 1, 1, 0]))
    thirds = Published("thirds", np.array([0, 0, 0, 1]))
    assert audit(records, halves, [whole], 5).tier == audit(records, whole, [halves], 5).tier == 0
    assert audit(records, halves, [], 5) == Audit(0, True, None, (), {"halves": 0}, 0, False)
    assert (audit(records, halves, [crossed], 5).tier, audit(records, halves, [crossed], 5).passed) == (1, True)
    found = audit(records, halves, [crossed], 6)
    assert (found.tier, found.passed, found.smallest) == (2, True, None)
    found = audit(records, halves, [thirds], 6)
    assert (found.passed, found.smallest, found.leaking_rows) == (False, 5, {"halves": 1, "thirds": 2})
    assert audit(records, halves, [whole, thirds], 6).tier == 2  # a union of rows of another adds nothing
    third = audit(records, halves, [crossed, thirds], 5)
    assert (third.tier, third.passed) == (1, True)


def test_suppressed_is_not_a_row() -> None:
    records = Records(np.array([9, 2, 9]), None)
    day = Published("day", np.array([0, 0, 0]))
    hours = Published("hours", np.array([0, -1, 1]))
    found = audit(records, hours, [day], 5)
    (leak,) = found.leaks
    assert (leak.release, leak.other, leak.size, found.confined) == ("day", "hours", 2, 1)
    assert (leak.added.tolist(), leak.subtracted.tolist()) == ([0], [0, 1])
    assert audit(records, hours, [Published("other", np.array([0, -1, 1]))], 5).tier == 0


def test_releases_that_share_no_record_are_connected_by_a_third() -> None:
    records = Records(np.array([9, 2, 9]), None)
    day = Published("day", np.array([0, 0, 0]))
    morning, evening = Published("morning", np.array([0, -1, -1])), Published("evening", np.array([-1, -1, 0]))
    assert audit(records, evening, [morning], 5).passed
    assert audit(records, evening, [day], 5).passed
    assert not audit(records, evening, [day, morning], 5).passed


@pytest.mark.parametrize(
    ("new", "earlier"),
    [
        (Published("a", np.zeros(1, np.int64)), []),
        (Published("a", np.zeros(2, np.int64)), [Published("a", np.zeros(2, np.int64))]),
    ],
)
def test_rows_must_fit_records(new: Published, earlier: list[Published]) -> None:
    with pytest.raises(InputError):
        audit(Records(np.ones(2, np.int64), None), new, earlier, 2)
