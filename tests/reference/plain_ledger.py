"""What can be derived from several releases, from the definition: linear algebra over all sets of overlaps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from crowdveil.model.arrays import Ints, Mask


def atoms_of(rows: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Return the distinct combinations of rows of records that a release covers, and the combination of each record, or -1."""
    table = np.stack(rows, axis=1)
    covered = (table >= 0).any(axis=1)
    atoms, number = np.unique(table[covered], axis=0, return_inverse=True)
    of_record = np.full(len(table), -1, np.int64)
    of_record[covered] = number.ravel()
    return atoms, of_record


def published_sums(atoms: Ints) -> Ints:
    """Return a line of 0 and 1 for each published row of each release: the atoms whose sum it is."""
    lines = [atoms[:, r] == row for r in range(atoms.shape[1]) for row in np.unique(atoms[:, r]) if row >= 0]
    return np.array(lines, np.int64).reshape(-1, len(atoms))


def derivable(atoms: Ints) -> Mask:
    """Return all non-empty sets of atoms, a line each, whose volume is a linear combination of published volumes."""
    sets = ((np.arange(1, 2 ** len(atoms))[:, None] >> np.arange(len(atoms))) & 1).astype(np.bool_)
    free = null_space(published_sums(atoms).astype(float))
    found: Mask = sets[np.abs(sets @ free).max(axis=1, initial=0.0) < 1e-8]
    return found


def smallest_set(rows: Sequence[Ints], volume: Ints, person: Ints | None) -> tuple[int, Ints]:
    """Return the people (or trips) of the smallest derivable set; and for each atom, of the smallest set with it."""
    atoms, of_record = atoms_of(rows)
    sets = derivable(atoms)
    if person is None:
        sizes = sets @ np.bincount(of_record[of_record >= 0], volume[of_record >= 0], len(atoms)).astype(np.int64)
    else:
        visits = np.zeros((len(atoms), int(person.max(initial=0)) + 1), np.int64)
        visits[of_record[of_record >= 0], person[of_record >= 0]] = 1
        sizes = (sets.astype(np.int64) @ visits > 0).sum(axis=1)
    of_atom = np.array([sizes[sets[:, i]].min() for i in range(len(atoms))], np.int64)
    return int(sizes.min()), of_atom


def bounds(rows: Sequence[Ints], volume: Ints) -> list[tuple[float, float]]:
    """Return the narrowest bounds of each atom's volume, by linear programming over all tables with the published volumes."""
    atoms, of_record = atoms_of(rows)
    sums = published_sums(atoms)
    held = np.bincount(of_record[of_record >= 0], volume[of_record >= 0], len(atoms))
    found = []
    for i in range(len(atoms)):
        goal = np.zeros(len(atoms))
        goal[i] = 1
        low, high = (linprog(sign * goal, A_eq=sums, b_eq=sums @ held) for sign in (1, -1))
        found.append((low.fun, np.inf if high.status == 3 else -high.fun))
    return found
