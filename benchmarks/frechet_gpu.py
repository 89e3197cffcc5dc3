"""Clusters by the Fréchet/Manhattan distance: all distances on a graphics card, against the pruned search on the processors.

Needs CuPy and an NVIDIA card, which the package itself does not use: this measures whether it would be worth it; without them
there is nothing to measure. The card computes the distances from every pivot to every trajectory that is left, a warp for
each pair, with the same bits as on the processors; it prunes nothing. Movers on the roads of a town, without resampling, k =
8 and 10 pivots. The last figure is the seconds of the processors (by the clock, on all of them) over those of the card, for
the largest set.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from _bench import oldenburg, say

K, PIVOTS, WARPS = 8, 10, 8
SIZES = (2_000, 5_000, 10_000, 20_000)
LIMITS = (64, 128, 192, 256, 384)
"""Points of a trajectory up to which one kernel goes: a lane of a warp has as many columns as are needed for the longest."""
SOURCE = r"""
extern "C" __global__ void one_pass(const double* x, const double* y, const long long* offsets, const long long* to,
                                    const long long* pivots, int others, int centers, double* found) {
  // Lane l has columns l * COLUMNS and on of the other path; rows are the points of the pivot, one step later in each lane.
  const double INF = 1.0 / 0.0;
  long long pair = (long long)blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5);
  if (pair >= (long long)others * centers) return;
  int lane = threadIdx.x & 31;
  long long a = offsets[pivots[pair / others]], p = offsets[pivots[pair / others] + 1] - a;
  long long b = offsets[to[pair % others]], q = offsets[to[pair % others] + 1] - b;
  double bx[COLUMNS], by[COLUMNS], I[COLUMNS], M[COLUMNS], R[COLUMNS], L[COLUMNS];
  for (int c = 0; c < COLUMNS; ++c) {
    int j = lane * COLUMNS + c;
    bx[c] = j < q ? x[b + j] : 0; by[c] = j < q ? y[b + j] : 0;
    I[c] = M[c] = R[c] = L[c] = INF;
  }
  int lanes = (int)((q + COLUMNS - 1) / COLUMNS);
  double lastI = INF, lastM = INF, lastR = INF, lastL = INF;  // the last column of this lane
  double aboveI = INF, aboveM = INF, aboveR = INF, aboveL = INF;  // the last column of the lane before, a row earlier
  double result = 0;
  for (int t = 0; t < p + lanes - 1; ++t) {
    double leftI = __shfl_up_sync(~0u, lastI, 1), leftM = __shfl_up_sync(~0u, lastM, 1);
    double leftR = __shfl_up_sync(~0u, lastR, 1), leftL = __shfl_up_sync(~0u, lastL, 1);
    if (lane == 0) leftI = leftM = leftR = leftL = INF;
    int i = t - lane;
    if (i >= 0 && i < p && lane < lanes) {
      double ax = x[a + i], ay = y[a + i];
      double dI = aboveI, dM = aboveM, dR = aboveR, dL = aboveL, sI = leftI, sM = leftM, sR = leftR, sL = leftL;
      #pragma unroll
      for (int c = 0; c < COLUMNS; ++c) {
        double fI = I[c], fM = M[c], fR = R[c], fL = L[c], dx = ax - bx[c], dy = ay - by[c], d = sqrt(dx * dx + dy * dy);
        if (i == 0 && lane == 0 && c == 0) { I[c] = M[c] = R[c] = d; L[c] = 1; }
        else {
          double least = fI < sI ? fI : sI; least = dI < least ? dI : least;
          double most = d > least ? d : least;
          double both = dI <= most ? dR : INF, first = fI <= most ? fR : INF, second = sI <= most ? sR : INF;
          bool better = first < both || (first == both && fL < dL);
          double r = better ? first : both, m = better ? fM : dM, l = better ? fL : dL;
          better = second < r || (second == r && sL < l);
          I[c] = most; M[c] = (better ? sM : m) + d; L[c] = (better ? sL : l) + 1; R[c] = M[c] / L[c];
        }
        dI = fI; dM = fM; dR = fR; dL = fL; sI = I[c]; sM = M[c]; sR = R[c]; sL = L[c];
        if (i == p - 1 && lane * COLUMNS + c == q - 1) result = R[c];
      }
      lastI = sI; lastM = sM; lastR = sR; lastL = sL;
    }
    aboveI = leftI; aboveM = leftM; aboveR = leftR; aboveL = leftL;
  }
  result = __shfl_sync(~0u, result, (int)((q - 1) / COLUMNS));
  if (lane == 0) found[pair] = result;
}
"""


class Card:
    """Distances from some trajectories to others, on the card."""

    def __init__(self, paths: Any) -> None:
        import cupy

        self.cupy = cupy
        length = np.diff(paths.offsets)
        limits = [*(m for m in LIMITS if m < length.max()), int(length.max())]
        self.columns = [cupy.asarray(np.ascontiguousarray(c)) for c in (*paths.points[:2], paths.offsets)]
        self.kind = cupy.asarray(np.searchsorted(limits, length))
        # Without fused multiplications, so that distances have the bits of the processors'.
        self.kernels = [
            cupy.RawKernel(SOURCE.replace("COLUMNS", str((m + 31) // 32)), "one_pass", options=("--fmad=false",))
            for m in limits
        ]

    def __call__(self, pivots: list[int], to: Any) -> Any:
        cupy = self.cupy
        found, kind, centers = cupy.empty((len(pivots), len(to))), self.kind[to], cupy.asarray(pivots)
        for number, kernel in enumerate(self.kernels):
            at = cupy.flatnonzero(kind == number)
            some = cupy.empty(len(pivots) * len(at))
            if len(at):
                sizes = np.int32(len(at)), np.int32(len(pivots))
                kernel((-(-len(some) // WARPS),), (32 * WARPS,), (*self.columns, to[at], centers, *sizes, some))
                found[:, at] = some.reshape(len(pivots), len(at))
        return found


def clusters_on_the_card(paths: Any) -> float:
    """Seconds of all clusters, every distance computed; pivots are chosen as the package does, by sixteen points of each."""
    import cupy

    n, (x, y) = len(paths.offsets) - 1, paths.points[:2]
    length = np.diff(paths.offsets)
    at = paths.offsets[:-1, None] + ((np.arange(16) + 0.5) / 16 * length[:, None]).astype(np.int64)
    sketch = cupy.asarray(x[at] + 1j * y[at])
    card, rng, alive = Card(paths), np.random.default_rng(0), cupy.arange(n)
    begin = time.perf_counter()
    while len(alive) >= K:
        first = int(alive[int(rng.integers(len(alive)))])
        last = int(alive[int(cupy.argmax(card([first], alive)[0]))])
        near, far = (cupy.abs(sketch[alive] - sketch[i]).mean(axis=1) ** 2 for i in (first, last))
        free, pivots = (alive != first) & (alive != last), [first]
        for step in range(1, PIVOTS - 1):
            best = int(cupy.argmin(cupy.where(free, near / step + far / (PIVOTS - 1 - step), cupy.inf)))
            pivots.append(int(alive[best]))
            free[best] = False
        distances = card([*pivots, last], alive)
        nearest = cupy.partition(distances, K - 1, axis=1)[:, :K]
        tightest = int(cupy.argmin((nearest**2).sum(axis=1)))
        alive = alive[distances[tightest] > nearest[tightest].max()]
    cupy.cuda.Device().synchronize()
    return time.perf_counter() - begin


def clusters_here(paths: Any) -> tuple[float, float]:
    """Seconds of all clusters by the clock and of all processors, pruned."""
    from crowdveil.solve.trajectory.distances import FrechetManhattan
    from crowdveil.solve.trajectory.pivots import Clustering

    people = np.arange(len(paths.offsets) - 1)
    wall, cpu = time.perf_counter(), time.process_time()
    Clustering(FrechetManhattan(paths), people, K, PIVOTS).clusters("join", np.random.default_rng(0))
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Measure both on growing sets; the first, small one also compiles."""
    try:
        import cupy
    except ImportError:
        print("needs CuPy and an NVIDIA card: pip install cupy-cuda13x")
        return
    from crowdveil.solve.trajectory.distances import FrechetManhattan, Paths
    from crowdveil.experiments.movers import make_movers

    ratio = 0.0
    for n in (SIZES[0], *SIZES):
        paths = Paths.of(make_movers(oldenburg(), n, seed=0))
        ours, theirs = FrechetManhattan(paths).from_one(0, np.arange(500)), Card(paths)([0], cupy.arange(500))[0].get()
        say("distances_with_the_same_bits", int((ours == theirs).sum()))
        card, (wall, cpu) = clusters_on_the_card(paths), clusters_here(paths)
        say(f"{n}_card_s", card)
        say(f"{n}_processors_s", wall)
        say(f"{n}_processors_cpu_s", cpu)
        ratio = wall / card
    say("ratio", ratio)


if __name__ == "__main__":
    main()
