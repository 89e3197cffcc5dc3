"""Aggregates of time steps as lists of locations, and their linking to trajectories by minimum-cost assignment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crowdveil.kernels._jit import kernel
from crowdveil.model.arrays import Floats, Indices, Ints, Mask

MAX_ASSIGNED = 1000
"""Locations of a time step that are assigned at once, after those that match exactly; more are divided from west to east."""


class Entries(NamedTuple):
    """The individuals of each time step in an aggregate, without their names.

    Attributes
    ----------
    offsets
        The entries of step i are offsets[i] to offsets[i + 1].
    start, end
        Where each individual is at the beginning and at the end of the step, in meters: columns x and y.
    place
        The number of the published place of the end.
    """

    offsets: Ints
    start: Floats
    end: Floats
    place: Ints

    def steps(self, first: int, last: int) -> Entries:
        """Return the entries of some steps."""
        offsets = self.offsets[first : last + 1]
        here = slice(int(offsets[0]), int(offsets[-1]))
        return Entries(offsets - offsets[0], self.start[here], self.end[here], self.place[here])


def link_entries(entries: Entries, night: Mask) -> Ints:
    """Return the place of each recovered trajectory (rows) at each step (columns).

    At night an individual is expected to stay, by day to go on with the distance of the last step. A trajectory that gets no
    entry in a step is taken to stay; an entry that gets no trajectory begins one.
    """
    steps = len(entries.offsets) - 1
    places = np.full((int(np.diff(entries.offsets).sum()), steps), -1, np.int64)
    position, velocity, count = np.zeros((len(places), 2)), np.zeros((len(places), 2)), 0
    for step in range(steps):
        here = np.arange(entries.offsets[step], entries.offsets[step + 1])
        expected = position[:count] + (0 if night[step] else velocity[:count])
        one, entry = assign(expected, entries.start[here])
        alone = np.setdiff1d(np.arange(len(here)), entry)
        one, entry = np.concatenate([one, count + np.arange(len(alone))]), here[np.concatenate([entry, alone])]
        new = one >= count
        if step:
            places[:count, step] = places[:count, step - 1]
        velocity[:count] = 0
        moved = entries.end[entry] - np.where(new[:, None], entries.start[entry], position[one])
        velocity[one], position[one], places[one, step] = moved, entries.end[entry], entries.place[entry]
        count += len(alone)
    return places[:count]


def link_days(days: list[Ints], of_places: int) -> Ints:
    """Return recovered trajectories of all days, from those of each day (rows by steps): days with similar places are linked.

    The cost of two days is the entropy that their places gain when they are mixed: 0 for equal shares of places, log 2 for
    different ones.
    """
    from scipy.optimize import linear_sum_assignment

    linked = days[0]
    for day in days[1:]:
        i, j = linear_sum_assignment(entropy_gain(_shares(linked, of_places), _shares(day, of_places)))
        alone = np.setdiff1d(np.arange(len(day)), j)
        longer = np.full((len(linked) + len(alone), linked.shape[1] + day.shape[1]), -1, np.int64)
        longer[: len(linked), : linked.shape[1]] = linked
        longer[i, linked.shape[1] :] = day[j]
        longer[len(linked) :, linked.shape[1] :] = day[alone]
        linked = longer
    return linked


def _shares(places: Ints, of_places: int) -> Floats:
    """Return the share of each place among the steps of each trajectory."""
    row, step = np.nonzero(places >= 0)
    counts = np.zeros((len(places), of_places), np.float64)
    np.add.at(counts, (row, places[row, step]), 1.0)
    shares: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return shares


def entropy_gain(first: Floats, second: Floats) -> Floats:
    """Return the entropy of the mean of two distributions minus the mean of their entropies, for all pairs of rows."""

    def terms(shares: Floats) -> Floats:
        found: Floats = -shares * np.log(np.where(shares > 0, shares, 1.0))
        return found

    own = [terms(side / 2).sum(axis=1) - terms(side).sum(axis=1) / 2 for side in (first, second)]
    gain: Floats = own[0][:, None] + own[1][None, :]
    for place in np.flatnonzero(first.any(axis=0) & second.any(axis=0)).tolist():
        i, j = np.flatnonzero(first[:, place]), np.flatnonzero(second[:, place])
        p, q = first[i, place][:, None], second[j, place][None, :]
        gain[np.ix_(i, j)] += terms((p + q) / 2) - terms(p / 2) - terms(q / 2)
    return gain


def assign(expected: Floats, found: Floats) -> tuple[Ints, Ints]:
    """Return pairs of expected and found locations with the smallest sum of distances, as many as there are.

    By the triangle inequality some best assignment has every pair of equal locations that is possible: these come first.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    first, second = _equal(expected, found)
    left, right = np.setdiff1d(np.arange(len(expected)), first), np.setdiff1d(np.arange(len(found)), second)
    blocks = max(1, -(-max(len(left), len(right)) // MAX_ASSIGNED))
    left, right = (
        rows[np.argsort(xy[rows, 0], kind="stable")] if blocks > 1 else rows
        for rows, xy in ((left, expected), (right, found))
    )
    for a, b in zip(np.array_split(left, blocks), np.array_split(right, blocks), strict=True):
        i, j = linear_sum_assignment(cdist(expected[a], found[b]))
        first, second = np.concatenate([first, a[i]]), np.concatenate([second, b[j]])
    return first, second


def _equal(expected: Floats, found: Floats) -> tuple[Ints, Ints]:
    """Return pairs of equal locations (to a millimeter), each location once."""
    both = np.round(np.concatenate([expected, found]), 3) + 0.0
    _, number = np.unique(both, axis=0, return_inverse=True)
    number = number.ravel()
    sides = []
    for low, high in ((0, len(expected)), (len(expected), len(both))):
        order = np.argsort(number[low:high], kind="stable")
        values = number[low:high][order]
        rank = np.arange(len(values)) - np.searchsorted(values, values)
        sides.append((values * (len(both) + 1) + rank, order))
    _, i, j = np.intersect1d(sides[0][0], sides[1][0], assume_unique=True, return_indices=True)
    return sides[0][1][i], sides[1][1][j]


def match_people(places: Ints, truth: list[tuple[Ints, Ints]], people: int, of_places: int) -> Floats:
    """Return for each person the share of steps in which one recovered trajectory is right, each trajectory taken once.

    `truth` has for each step pairs of a person and a place where the person was. Pairs with the most right steps come first.
    """
    from scipy.sparse import csr_array

    steps = places.shape[1]
    row, step = np.nonzero(places >= 0)
    recovered = csr_array(
        (np.ones(len(row), np.int32), (row, step * of_places + places[row, step])),
        shape=(len(places), steps * of_places),
    )
    who, where = (
        np.concatenate([part[i] + (s * of_places if i else 0) for s, part in enumerate(truth)]) for i in range(2)
    )
    real = csr_array((np.ones(len(who), np.int32), (who, where)), shape=(people, steps * of_places))
    common = (real @ recovered.T).tocoo()
    first, second = (side.astype(np.int32) for side in common.coords)
    order = np.lexsort((second, first, -common.data))
    taken = take_pairs(first, second, order, people, len(places))
    right = np.zeros(people)
    right[first[taken]] = common.data[taken] / steps
    return right


@kernel
def take_pairs(first: Indices, second: Indices, order: Ints, firsts: int, seconds: int) -> Mask:
    """Return the pairs that are taken when each is taken unless one of its members was taken before."""
    taken = np.zeros(len(order), np.bool_)
    used_first, used_second = np.zeros(firsts, np.bool_), np.zeros(seconds, np.bool_)
    for i in range(len(order)):
        a, b = first[order[i]], second[order[i]]
        if not used_first[a] and not used_second[b]:
            used_first[a] = True
            used_second[b] = True
            taken[order[i]] = True
    return taken
