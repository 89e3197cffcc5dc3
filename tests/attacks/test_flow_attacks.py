"""Adversaries of flows, worked out by hand."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import flow_release
from written_flows import AREAS

from crowdveil.attacks.base import Exposure
from crowdveil.attacks.od.published import Published
from crowdveil.model.release import FlowRelease
from crowdveil.registry import find_attack


def attacked(name: str, release: FlowRelease, k: int = 10, rows: Any = "exact") -> Exposure:
    attack = find_attack(name)
    found: Exposure = attack.run(Published(release, k, rows), attack.params())
    return found


def test_the_smallest_group() -> None:
    found = attacked(
        "minimum-group-size", flow_release([(0, "a", "b", 12, 11), (0, "c", "b", 30, 9), (60, "c", "b", 10, 10)])
    )
    assert found.values == {"rows": 3, "smallest_people": 9, "smallest_volume": 10, "rows_below_k": 1}
    assert (found.worst, found.below_k) == (9, True)
    assert found.explanation == "3 rows checked, 1 with fewer than 10 people."
    nothing = attacked("minimum-group-size", flow_release([]))
    assert (nothing.worst, nothing.below_k) == (None, False)


def test_totals_that_few_are_behind() -> None:
    """From c go 4 in the first step and 5 in the second: both are few, together they are 9; b is reached by 24 and 5."""
    rows = [(0, "a", "b", 20, 20), (0, "c", "b", 4, 4), (60, "c", "b", 5, 5)]
    found = attacked("singleton-margins", flow_release(rows, [(0, 24, 30), (60, 5, 7), (120, 0, None)]))
    # By step: a 20, c 4, c 5, and b 24, b 5; over steps: a 20, c 9, and b 29. Suppressed: 30, 7.
    assert found.values == {"totals": 8, "smallest": 4, "totals_below_k": 4, "suppressed_totals_below_k": 1}
    assert found.below_k and found.worst == 4
    fine = attacked("singleton-margins", flow_release(rows[:1], [(0, 20, 10)]))
    assert not fine.below_k and fine.worst == 10


def test_one_destination_for_all() -> None:
    """In the first step all of a go to b (one tile), all of c to ab (two), and ab goes to two; in the second a goes to two."""
    rows = [(0, "a", "b", 10, 10), (0, "c", "ab", 30, 10), (0, "ab", "a", 20, 10), (0, "ab", "c", 20, 10),
            (60, "a", "b", 10, 10), (60, "a", "c", 10, 10)]  # fmt: skip
    found = attacked("homogeneity", flow_release(rows))
    assert found.values["origins"] == 4 and found.values["fewest_destinations"] == 1
    assert found.values["origins_with_destination_area_known_percent"] == 50
    assert found.values["origins_with_destination_tile_known_percent"] == 25
    assert found.values["trips_with_destination_area_known_percent"] == 40
    assert found.values["trips_with_destination_tile_known_percent"] == 10
    assert found.values["destinations"] == 6 and found.values["destinations_with_origin_area_known_percent"] == 100
    assert not found.below_k and found.worst is None
    assert (
        "from 2 all published trips go to one area (destination area known), from 1 of these to one tile"
        in found.explanation
    )
    assert attacked("homogeneity", flow_release([])).values["origins_with_destination_area_known_percent"] is None


def test_what_is_left_of_a_row() -> None:
    """ab to c has 25; a to c has 20 of them, so that b to c has 5. In the next step the rest is 15, then nothing overlaps."""
    rows = [
        (0, "ab", "c", 25, 20),
        (0, "a", "c", 20, 15),
        (60, "ab", "c", 35, 20),
        (60, "a", "c", 20, 15),
        (120, "a", "b", 9, 9),
    ]
    found = attacked("differencing", flow_release(rows))
    assert found.values["steps_with_overlapping_rows"] == 2 and found.values["differences"] == 2
    assert found.values["differences_below_k"] == 1 and found.worst == 5 and found.below_k
    assert not attacked("differencing", flow_release(rows[2:])).below_k


def test_all_parts_are_subtracted_together() -> None:
    """ab to ab has 60; a to a 20, a to b 20 and b to ab 18 leave 2 in all, though each alone leaves many."""
    rows = [(0, "ab", "ab", 60, 50), (0, "a", "a", 20, 15), (0, "a", "b", 20, 15), (0, "b", "ab", 18, 15)]
    found = attacked("differencing", flow_release(rows))
    assert found.values["differences"] == 4 and found.worst == 2 and found.below_k


def test_nothing_can_be_subtracted_from_what_says_not_all() -> None:
    rows = [(0, "ab", "c", 25, 20), (0, "a", "c", 20, 15)]
    for how, why in (("overlapping", "each trip is in one of several rows"), ("noisy", "volumes have noise")):
        found = attacked("differencing", flow_release(rows), rows=how)
        assert not found.below_k and why in found.explanation


def test_what_was_suppressed_can_be_one_pair_alone() -> None:
    """Of nine pairs of tiles eight are published: the twelve trips that were suppressed are the ninth."""
    pairs = [(o, d) for o, d in product("abc", "abc") if (o, d) != ("c", "c")]
    found = attacked("differencing", flow_release([(0, o, d, 10, 10) for o, d in pairs], [(0, 80, 12)]))
    assert found.values["suppressed_totals_of_one_pair"] == 1 and not found.below_k and found.worst == 12
    few = attacked("differencing", flow_release([(0, o, d, 10, 10) for o, d in pairs], [(0, 80, 3)]))
    assert few.below_k and few.worst == 3


def _cells(origin: str, destination: str) -> set[tuple[str, str]]:
    return set(product(AREAS[origin], AREAS[destination]))


AREA = st.sampled_from(list(AREAS))


@given(drawn=st.lists(st.tuples(st.integers(0, 1), AREA, AREA, st.integers(1, 30)), max_size=7))
def test_differences_are_those_of_sets(drawn: list[tuple[int, str, str, int]]) -> None:
    """A row inside another: all its pairs are the other's. Of two equal ones it is the same either way."""
    rows = [(60 * step, o, d, v, v) for step, o, d, v in sorted(drawn, key=lambda r: r[0])]
    found = attacked("differencing", flow_release(rows), k=8)
    left = []
    for i, (step, o, d, v, _) in enumerate(rows):
        outer = _cells(o, d)
        inner = [j for j, r in enumerate(rows) if j != i and r[0] == step and _cells(r[1], r[2]) <= outer]
        inner = [j for j in inner if _cells(rows[j][1], rows[j][2]) < outer or j > i]
        left += [abs(v - rows[j][3]) for j in inner]
        taken: list[int] = []
        for j in sorted(inner, key=lambda j: -len(_cells(rows[j][1], rows[j][2]))):
            if all(not _cells(rows[j][1], rows[j][2]) & _cells(rows[t][1], rows[t][2]) for t in taken):
                taken.append(j)
        if len(taken) > 1:
            left.append(abs(v - sum(rows[j][3] for j in taken)))
    assert (found.values["differences"], found.values["smallest"]) == (
        len(left),
        min((x for x in left if x), default=None),
    )
    assert found.below_k == any(0 < x < 8 for x in left)


def _plain_beliefs(rows: list[Any], prior: str) -> tuple[float, float, float]:
    """Mean and largest divergence in bits, and the largest ratio, from the belief in every destination tile of the formula."""
    weights, bits, ratios = [], [], []
    for step in sorted({row[0] for row in rows}):
        own = [row for row in rows if row[0] == step]
        total = sum(v for *_, v, _ in own)
        before = {
            d: sum(v / len(AREAS[to]) for _, _, to, v, _ in own if d in AREAS[to]) / total
            if prior == "margins"
            else 1 / 3
            for d in "abc"
        }
        for o in "abc":
            leaving = {
                d: sum(
                    v / len(AREAS[of]) / len(AREAS[to]) for _, of, to, v, _ in own if o in AREAS[of] and d in AREAS[to]
                )
                for d in "abc"
            }
            whole = sum(leaving.values())
            if whole:
                after = {d: x / whole for d, x in leaving.items() if x}
                weights.append(whole)
                bits.append(sum(p * math.log2(p / before[d]) for d, p in after.items()))
                ratios.append(max(p / before[d] for d, p in after.items()))
    mean = sum(w * b for w, b in zip(weights, bits, strict=True)) / sum(weights)
    return mean, max(bits), max(ratios)


def test_a_belief_by_hand() -> None:
    """From a 30 go to b and 10 to c, from b 40 to c: the prior is 3/8 for b and 5/8 for c."""
    rows = [(0, "a", "b", 30, 30), (0, "a", "c", 10, 10), (0, "b", "c", 40, 40)]
    found = attacked("destination-belief", flow_release(rows)).values
    first = 0.75 * math.log2(2) + 0.25 * math.log2(0.25 / 0.625)
    second = math.log2(1 / 0.625)
    assert found["origin_tiles"] == 2 and found["ratio_largest"] == 2.0
    assert found["divergence_bits_mean"] == pytest.approx((first + second) / 2, abs=1e-4)
    assert found["divergence_bits_largest"] == pytest.approx(second, abs=1e-4)
    assert found["posterior_belief_percent_mean"] == pytest.approx(100 * (0.5 * (0.75**2 + 0.25**2) + 0.5), abs=0.01)
    assert found["prior_belief_percent_mean"] == pytest.approx(
        100 * (0.5 * (0.75 * 0.375 + 0.25 * 0.625) + 0.5 * 0.625), abs=0.01
    )
    # All origins with the same destinations: the release adds nothing to a belief.
    same = [(0, o, d, v, v) for o, v in (("a", 10), ("b", 30)) for d in ("a", "c")]
    assert attacked("destination-belief", flow_release(same)).values["divergence_bits_largest"] == 0


@given(
    drawn=st.lists(st.tuples(st.integers(0, 1), AREA, AREA, st.integers(1, 30)), min_size=1, max_size=6),
    prior=st.sampled_from(["margins", "uniform"]),
)
def test_beliefs_are_those_of_the_formula(drawn: list[tuple[int, str, str, int]], prior: str) -> None:
    rows = [(60 * step, o, d, v, v) for step, o, d, v in sorted(drawn, key=lambda r: r[0])]
    disjoint: list[Any] = []
    for row in rows:  # of exact rows no two share a pair of tiles
        if all(row[0] != r[0] or not _cells(row[1], row[2]) & _cells(r[1], r[2]) for r in disjoint):
            disjoint.append(row)
    attack = find_attack("probabilistic")
    for listed, how in ((disjoint, "exact"), (rows, "overlapping")):
        found = attack.run(Published(flow_release(listed), 10, how), attack.params(prior=prior)).values  # type: ignore[arg-type,call-arg]
        mean, largest, ratio = _plain_beliefs(listed, prior)
        assert found["divergence_bits_mean"] == pytest.approx(mean, abs=1e-4)
        assert found["divergence_bits_largest"] == pytest.approx(largest, abs=1e-4)
        assert found["ratio_largest"] == pytest.approx(ratio, abs=1e-4)


@pytest.mark.parametrize(
    "name", ["minimum-group-size", "singleton-margins", "differencing", "homogeneity", "destination-belief"]
)
def test_an_empty_release_reveals_nothing(name: str) -> None:
    found = attacked(name, flow_release([]))
    assert not found.below_k and found.worst is None and np.all([v in (0, None) for v in found.values.values()])
