"""Measure the boxes of a release, in place of the points that other measures compare, and the sizes of equivalence classes.

A trajectory of boxes is *possibly* in a circle at some time of an interval if one of its boxes meets the circle and the interval.
It is possibly there at every time if its boxes begin before the interval and end after it, and every box whose times meet the
interval meets the circle. Other measures (`sid`, `rmse`) take the centers of boxes as points.

References
----------
M. Gramaglia, M. Fiore: Hiding mobile traffic fingerprints with GLOVE. CoNEXT 2015, for areas and durations. O. Abul, F. Bonchi,
M. Nanni: Never walk alone: uncertainty for anonymity in moving objects databases. ICDE 2008, for discernibility. Trajcevski,
Wolfson, Hinrichs, Chamberlain: Managing uncertainty in moving objects databases. TODS 29(3), 2004, for possible answers.
"""

from __future__ import annotations

import numpy as np

from crowdveil import engine
from crowdveil.errors import InputError
from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.measures.trajectory.range_queries import (
    Answers,
    RangeQueryParams,
    answers,
    draw_queries,
    query_measure,
)
from crowdveil.model.arrays import Floats, Ints, take_slices
from crowdveil.model.box_bounds import BoxBounds
from crowdveil.model.canonical import published_keys
from crowdveil.model.trajectories import Trajectories
from crowdveil.solve.trajectory.path_tree import RangeQueries

BLOCK = 2048
"""Queries of a task."""


def discernibility(compared: TrajectoryComparison) -> Floats:
    """Return the mean over the original of the size of its equivalence class; all of them where it is suppressed."""
    release, n = compared.release, len(compared.original)
    if n == 0:
        return np.array([np.nan])
    sizes = _classes(compared)[1]
    published = len(release) if release.source is None else len(np.unique(release.source))
    suppressed = max(n - published, 0)
    total = float(np.sum(sizes.astype(np.float64) ** 2)) * published / max(len(release), 1)
    return np.array([(total + suppressed * n) / n])


def box_area(compared: TrajectoryComparison) -> Floats:
    """Return the mean area of published boxes."""
    return np.array([_boxes(compared).area_km2.mean() if len(compared.release) else np.nan])


def box_duration(compared: TrajectoryComparison) -> Floats:
    """Return the mean time that published boxes span."""
    if not len(compared.release):
        return np.array([np.nan])
    boxes = _boxes(compared)
    return np.array([(boxes.t_max - boxes.t_min).mean()])


def _boxes(compared: TrajectoryComparison) -> BoxBounds:
    if compared.release.boxes is None:
        raise InputError("release", "it has points and no boxes; choose other measures.")
    return compared.release.boxes


def _classes(compared: TrajectoryComparison) -> tuple[Ints, Ints]:
    """Return one published trajectory of each equivalence class, and the sizes of classes."""

    def make() -> tuple[Ints, Ints]:
        _, first, sizes = np.unique(published_keys(compared.release), axis=1, return_index=True, return_counts=True)
        return first, sizes

    return compared.once("equivalence classes", make)


def _possible_answers(compared: TrajectoryComparison, params: RangeQueryParams) -> tuple[Answers, Answers]:
    """Answer all queries in the original, and in the boxes of the release: possibly inside at some time, and at every time."""
    from crowdveil.kernels.trajectory.box_queries import possible_counts

    boxes = _boxes(compared)

    def make() -> Answers:
        first, sizes = _classes(compared)
        rows, offsets = take_slices(compared.release.offsets, first)
        shown = boxes.rows(rows)
        begin, end = ((t - compared.start).astype(np.float64) for t in (shown.t_min, shown.t_max))
        bounds = np.stack([*shown.sides(compared.original.projection), begin, end])
        found: Answers = []
        for window in range(len(params.windows)):
            queries = draw_queries(compared, params, window)

            def task(block: int, queries: RangeQueries = queries) -> tuple[Ints, Ints]:
                return possible_counts(bounds, offsets, sizes, *queries.part(slice(block * BLOCK, (block + 1) * BLOCK)))

            parts = engine.current().map(task, -(-len(queries) // BLOCK))
            found.append((np.concatenate([some for some, _ in parts]), np.concatenate([every for _, every in parts])))
        return found

    possible = compared.once(("possible answers", params.model_dump_json()), make)
    return answers(compared, params)[0], possible


MEASURES = (
    Measure(
        "discernibility", "mean size of the equivalence class", "", "lower", Trajectories, discernibility,
        "Mean over original trajectories of the number that are published equal to it; all of them where it is suppressed.",
        symbol="DM",
    ),
    Measure(
        "box-area", "mean area of boxes", "km²", "lower", Trajectories, box_area,
        "Mean area of published boxes, each counted for every trajectory that it is published for.",
        of_boxes=True,
    ),
    Measure(
        "box-duration", "mean duration of boxes", "s", "lower", Trajectories, box_duration,
        "Mean time that published boxes span, each counted for every trajectory that it is published for.",
        of_boxes=True,
    ),
    query_measure(
        "box-sid", 0, "Distortion of possibly passing trajectories",
        "SID with boxes: Q* are the trajectories of which a box meets the circle and the interval.",
        answered=_possible_answers, of_boxes=True,
    ),
    query_measure(
        "box-aid", 1, "Distortion of possibly staying trajectories",
        "AID with boxes: Q* are the trajectories whose boxes span the interval and, as far as they meet it, meet the circle.",
        answered=_possible_answers, of_boxes=True,
    ),
)  # fmt: skip
