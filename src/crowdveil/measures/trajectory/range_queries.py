"""Measure the change of answers to spatio-temporal range queries: SID and AID.

A query is a circle R and an interval of time [t_b, t_e]. A trajectory moves at even speed on straight lines between its points,
and exists from its first time to its last. It is *sometime inside* (SI) if it is in R at some time of the interval, and *always
inside* (AI) if it is in R at every time of it. At a time at which it does not exist it is not inside, so that a trajectory that
begins after t_b or ends before t_e is not always inside. Circles and intervals are closed. Where several points have the same
time, it is at all of them then. Q is the number of trajectories of which SI, or AI, holds; the distortion of a query is
|Q − Q*| / max(Q, Q*), and 0 where both are 0.

Notes
-----
- The paper draws radii from the whole numbers of [0, 500], and t_b ≤ t_e from [0, t] for several t; here t_b and t_e are two
  whole seconds from 0 to t, in order. It does not define the centers of circles. Here they are random points of the original:
  of circles anywhere in the box around the data most are empty if there are outliers. `centers = box` draws the latter.
- Queries without a result on either side carry no information and lower the mean; with an interval of a moment they are the
  majority.

References
----------
C. Ferreira Torres, R. Trujillo-Rasua: The Fréchet/Manhattan distance and the trajectory anonymization problem. DBSec 2016,
section 5.
G. Trajcevski, O. Wolfson, K. Hinrichs, S. Chamberlain: Managing uncertainty in moving objects databases. TODS 29(3), 2004.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from crowdveil.measures.base import Measure
from crowdveil.measures.trajectory.comparison import TrajectoryComparison
from crowdveil.model.arrays import Floats, Ints
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.path_tree import PathTree, RangeQueries

_LONGEST_S = 10**9


def _windows(value: Any) -> str:
    """Return whole seconds separated by commas, or by + where commas separate measures; also from a list of numbers."""
    texts = (
        value.replace("+", ",").split(",")
        if isinstance(value, str)
        else value
        if isinstance(value, list | tuple)
        else [value]
    )
    seconds = [str(text).strip() for text in texts]
    good = all(text.isascii() and text.isdigit() and int(text) <= _LONGEST_S for text in seconds)
    if not seconds or not good or len(set(map(int, seconds))) < len(seconds):
        raise ValueError("different whole seconds with commas between, such as 0,300,600")
    return ",".join(str(int(text)) for text in seconds)


Windows = Annotated[str, BeforeValidator(_windows)]
"""Ends of several windows of time, as in "0,300,600"."""


class RangeQueryParams(Params):
    """Parameters of the queries."""

    queries: int = Field(100_000, ge=1, le=100_000_000)
    """Queries of each window."""
    radius_m: int = Field(500, ge=0, le=10_000_000)
    """Largest radius of a circle; radii are whole meters from 0 to it."""
    windows_s: Windows = "0,300,600,1800,3600"
    """Lengths of windows from the first time of the original: intervals of queries lie in them."""
    centers: Literal["data", "box"] = "data"
    """Centers of circles: random points of the original, or anywhere in the box around them."""
    seed: int = Field(0, ge=0)
    """Seed of the queries."""

    @property
    def windows(self) -> tuple[int, ...]:
        """Return the length of each window in seconds."""
        return tuple(int(text) for text in self.windows_s.split(","))

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the name of each window."""
        return tuple(f"0 to {seconds:,} s" for seconds in self.windows)


def draw_queries(compared: TrajectoryComparison, params: RangeQueryParams, window: int) -> RangeQueries:
    """Return the queries of one of the windows, from the original alone."""
    paths, n = compared.paths, params.queries
    rng = np.random.default_rng(np.random.SeedSequence([params.seed, window]))
    if params.centers == "data":
        point = rng.integers(0, len(paths.x), n)
        x, y = paths.x[point], paths.y[point]
    else:
        x, y = (rng.uniform(column.min(), column.max(), n) for column in (paths.x, paths.y))
    radius = rng.integers(0, params.radius_m, n, endpoint=True).astype(np.float64)
    moments = np.sort(rng.integers(0, params.windows[window], (2, n), endpoint=True), axis=0) + paths.t.min()
    return RangeQueries(x, y, radius, moments[0], moments[1])


Answers = list[tuple[Ints, Ints]]
"""For each window the results of SI and AI."""


def answers(compared: TrajectoryComparison, params: RangeQueryParams) -> tuple[Answers, Answers]:
    """Answer all queries in the original and in the release, once for all measures."""

    def ask(tree: PathTree) -> Answers:
        return [tree.counts(draw_queries(compared, params, window)) for window in range(len(params.windows))]

    name = f"range queries {params.model_dump_json(include=set(RangeQueryParams.model_fields))}"
    original = compared.once(name, lambda: ask(PathTree.of(compared.paths)), of_original=True)
    return original, compared.once(name, lambda: ask(PathTree.of(compared.published)))


def mean_distortion(original: Ints, published: Ints) -> float:
    """Return the mean of |Q − Q*| / max(Q, Q*) over queries; NaN over none."""
    larger = np.maximum(original, published)
    each = np.abs(original - published) / np.maximum(larger, 1)
    return float(each.mean()) if len(each) else float("nan")


def query_measure(name: str, kind: int, title: str, doc: str, symbol: str) -> Measure:
    """Return the record of the mean distortion of SI (0) or AI (1) in each window."""

    def compute(compared: TrajectoryComparison, params: RangeQueryParams) -> Floats:
        if len(compared.original) == 0:
            return np.full((1, len(params.windows)), np.nan)
        both = zip(*answers(compared, params), strict=True)
        return np.array([[mean_distortion(a[kind], b[kind]) for a, b in both]])

    parts = RangeQueryParams().parts
    return Measure(name, title, "", "lower", Trajectories, compute, doc, symbol, parts, RangeQueryParams)


MEASURES = (
    query_measure(
        "sid", 0, "Distortion of passing trajectories",
        "Mean over random circles and intervals of |Q − Q*| / max(Q, Q*), Q the trajectories that are inside at some time.",
        symbol="SID",
    ),
    query_measure(
        "aid", 1, "Distortion of staying trajectories",
        "Mean over random circles and intervals of |Q − Q*| / max(Q, Q*), Q the trajectories that are inside all the time.",
        symbol="AID",
    ),
)  # fmt: skip
