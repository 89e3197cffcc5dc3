"""Checks of an audit against linear algebra over all sets, for tests and the benchmark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from plain_ledger import atoms_of, smallest_set
from small_releases import SmallWorld, random_release, random_world, size_of

from crowdveil.ledger.audit import Audit, Published, Records, audit
from crowdveil.model.arrays import Ints, Mask


def releases_of(
    seed: int, wanted: int, *, people: bool, releases: int = 2, other_k: bool = False
) -> Iterator[tuple[SmallWorld, list[Published], int]]:
    """Yield random releases of the same trips with few enough overlaps to try all sets of them; each with a k of its own."""
    rng = np.random.default_rng(seed)
    while wanted:
        k = int(rng.integers(2, 7))
        world = random_world(rng, people=people)
        ks = [k + (int(rng.integers(0, 4)) if other_k else 0) for _ in range(releases)]
        made = [random_release(rng, world, own, f"release {i}")._replace(k=own) for i, own in enumerate(ks)]
        atoms, _ = atoms_of([m.row for m in made])
        if 2 <= len(atoms) <= 11 and all((m.row >= 0).any() for m in made):
            wanted -= 1
            yield world, made, k


def derived_records(found: Audit, made: list[Published], i: int) -> Mask:
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
        assert found.leaking_rows.get(release.name, 0) == len(leaking)
        for row, size in leaking.items():
            assert size == min(s for s, inside in sets if np.any(inside & (release.row == row)))
    assert np.all(of_record < len(atoms))
