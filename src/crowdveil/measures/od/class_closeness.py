"""Measure t-closeness of traveler classes: how far the classes of each published origin are from those of all trips."""

from __future__ import annotations

from functools import partial

import numpy as np

from crowdveil.io.traveler_classes import TravelerClasses
from crowdveil.measures.base import Measure, MeasureRequest, ratio
from crowdveil.measures.od.closeness import FAR
from crowdveil.measures.od.comparison import OdComparison
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows

NAME = "class-closeness"
PARTS = ("mean", "share above 0.5", "share with one class")


def class_distances(shares: Floats, of_all: Floats, *, ordered: bool) -> Floats:
    """Return the earth mover's distance of distributions over classes (rows) from one, 0 to 1.

    Classes are equally far apart, so that it is half the sum of differences; ordered ones are as far apart as their places.
    """
    difference = shares - of_all
    if not ordered:
        halves: Floats = np.abs(difference).sum(axis=1) / 2
        return halves
    moved: Floats = np.abs(np.cumsum(difference, axis=1)[:, :-1]).sum(axis=1) / max(difference.shape[1] - 1, 1)
    return moved


def closeness_of_classes(classes: TravelerClasses, compared: OdComparison) -> Floats:
    """Return the mean distance over published trips, and the shares of trips from origins that are far, or of one class."""
    sums = compared.once(NAME, lambda: _sums(classes, compared))
    trips = compared.of_steps(sums[:, -1])
    return np.column_stack([ratio(compared.of_steps(sums[:, i]), trips) for i in range(len(PARTS))])


def request_for(classes: TravelerClasses) -> MeasureRequest:
    """Return the request for the measure of the classes that were read."""
    distance = "their places in the given order" if classes.ordered else "all classes equally far apart"
    measure = Measure(
        NAME, "distance of an origin's traveler classes from all", "", "neither", Flows,
        partial(closeness_of_classes, classes),
        "Earth mover's distance between the traveler classes of the published trips of each origin and those of all published "
        f"trips of the time step, with {distance}: its mean over trips, the share of trips from origins with more than "
        "0.5, and the share from origins where all trips are of one class (homogeneity). 0: the "
        "origin reveals nothing about the class.",
        parts=PARTS,
    )  # fmt: skip
    return MeasureRequest(NAME, measure)


def _sums(classes: TravelerClasses, compared: OdComparison) -> Floats:
    """Return for each time step the sums over trips of the distance, of being far and of one class, and the trips."""
    original, release = compared.original, compared.release
    sums = np.zeros((original.steps, len(PARTS) + 1))
    if compared.row is None:
        return sums + np.nan
    row = compared.row[classes.flow]
    kept = row >= 0
    step, number, trips = original.step[classes.flow][kept], classes.number[kept], classes.trips[kept]
    areas, width = max(len(release.areas), 1), max(len(classes.names), 1)
    origins, of = np.unique(step * areas + release.origin[row[kept]], return_inverse=True)
    held = np.bincount(of * width + number, trips, len(origins) * width).reshape(len(origins), width)
    step_of = origins // areas
    for one in np.unique(step_of).tolist():
        inside = held[step_of == one]
        each, total = inside.sum(axis=1), inside.sum()
        distance = class_distances(inside / each[:, None], inside.sum(axis=0) / total, ordered=classes.ordered)
        single = np.count_nonzero(inside, axis=1) == 1
        sums[one] = (each * distance).sum(), each[distance > FAR].sum(), each[single].sum(), total
    return sums
