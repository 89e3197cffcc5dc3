"""The audit of several releases against linear algebra over all sets, linear programs, and the published volumes alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from examples import tries
from plain_ledger import atoms_of, bounds, smallest_set
from small_releases import SmallWorld, random_release, random_world, size_of

from crowdveil.errors import InputError
from crowdveil.ledger.audit import Audit, Published, Records, audit
from crowdveil.model.arrays import Ints


def pairs(
    seed: int, wanted: int, *, people: bool, releases: int = 2
) -> Iterator[tuple[SmallWorld, list[Published], int]]:
    """Yield random releases of the same trips with few enough overlaps to try all sets of them."""
    rng = np.random.default_rng(seed)
    while wanted:
        k = int(rng.integers(2, 7))
        world = random_world(rng, people=people)
        made = [random_release(rng, world, k, f"release {i}") for i in range(releases)]
        atoms, _ = atoms_of([m.row for m in made])
        if 2 <= len(atoms) <= 11 and all((m.row >= 0).any() for m in made):
            wanted -= 1
            yield world, made, k


def derived_records(found: Audit, made: list[Published], i: int) -> np.ndarray:
    """Return the records of a derived set, and check that the subtraction never goes below 0."""
    leak = found.leaks[i]
    rows = {m.name: m.row for m in made}
    count = np.isin(rows[leak.release], leak.added).astype(int) - np.isin(rows[leak.other], leak.subtracted)
    assert set(np.unique(count)) <= {0, 1}
    return count == 1


def volumes(records: Records, row: Ints) -> dict[int, int]:
    return {int(r): int(records.volume[row == r].sum()) for r in np.unique(row) if r >= 0}


def check_pair(world: SmallWorld, made: list[Published], k: int) -> tuple[bool, bool]:
    """Audit two releases; return whether a small set exists, and whether one was found."""
    records = world.records
    found = audit(records, made[0], made[1:], k)
    worst, of_atom = smallest_set([m.row for m in made], *records)
    assert found.passed == (not found.leaks) == (found.smallest is None)
    if records.person is None:
        assert found.smallest == (worst if worst < k else None)
        check_rows(found, made, of_atom, k)
    for i, leak in enumerate(found.leaks):
        inside = derived_records(found, made, i)
        assert leak.size == size_of(records, inside)
        published = {m.name: volumes(records, m.row) for m in made}
        taken = sum(published[leak.release][r] for r in leak.added.tolist())
        taken -= sum(published[leak.other][r] for r in leak.subtracted.tolist())
        assert taken == records.volume[inside].sum()  # from the published numbers alone
    return worst < k, not found.passed


def check_rows(found: Audit, made: list[Published], of_atom: Ints, k: int) -> None:
    """Check which rows leak, and that the smallest set of each is among the leaks."""
    atoms, of_record = atoms_of([m.row for m in made])
    sets = [(leak.size, derived_records(found, made, i)) for i, leak in enumerate(found.leaks)]
    for r, release in enumerate(made):
        best = {int(row): int(of_atom[atoms[:, r] == row].min()) for row in np.unique(atoms[:, r]) if row >= 0}
        leaking = {row: size for row, size in best.items() if size < k}
        assert found.leaking_rows[release.name] == len(leaking)
        for row, size in leaking.items():
            assert size == min(s for s, inside in sets if np.any(inside & (release.row == row)))
    assert np.all(of_record < len(atoms))


def test_pairs_of_trips_are_audited_exactly() -> None:
    leaks = 0
    for world, made, k in pairs(1, tries(1500), people=False):
        exists, refused = check_pair(world, made, k)
        assert exists == refused
        leaks += exists
    assert leaks > tries(1500) // 10


def test_no_small_set_of_people_is_missed() -> None:
    strict = 0
    for world, made, k in pairs(2, tries(900), people=True):
        exists, refused = check_pair(world, made, k)
        assert refused or not exists
        if refused and not exists:
            assert audit(world.records, made[0], made[1:], k).strict
            strict += 1
    assert strict <= tries(900) // 100


def test_no_small_set_of_three_releases_is_missed() -> None:
    for world, made, k in pairs(3, tries(600), people=False, releases=3):
        found = audit(world.records, made[0], made[1:], k)
        before = min(smallest_set([m.row for m in part], *world.records)[0] for part in (made[1:], made[:2], made[::2]))
        if found.passed and before >= k:
            assert smallest_set([m.row for m in made], *world.records)[0] >= k
        assert found.passed or found.leaks


def test_bounds_and_largest_volumes_are_those_of_linear_programs() -> None:
    for world, made, k in pairs(4, tries(60), people=False):
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
