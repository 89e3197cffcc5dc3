"""The rest of a budget is spent on the splits of best gain, as a plain loop over sorted gains does it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from crowdveil.experiments.profiles import make_profile
from crowdveil.kernels.od.structures import PUBLISH, SUPPRESS, WHOLE
from crowdveil.model.arrays import Ints
from crowdveil.solve.od.boxes import BoxSolution, BoxSpace
from crowdveil.solve.od.region_space import Objective, RegionSpace


def _published(boxes: BoxSpace, choice: Ints) -> list[int]:
    stack, found = [len(boxes) - 1], []
    while stack:
        i = stack.pop()
        if choice[i] == PUBLISH:
            found.append(i)
        elif choice[i] != SUPPRESS:
            stack.extend(_links(boxes, choice[i]))
    return sorted(found)


def _links(boxes: BoxSpace, split: int) -> list[int]:
    of, link = boxes.splits.link_offsets, boxes.splits.link
    found: list[int] = link[of[split] : of[split + 1]].tolist()
    return found


def _best_split(boxes: BoxSpace, i: int, rest: int) -> tuple[float, int]:
    """Return the negative gain and the split of a box, for sorting; (0, -1) where there is none."""
    best = (0.0, PUBLISH)
    for split in range(boxes.splits.offsets[i], boxes.splits.offsets[i + 1]):
        lost, parts = int(boxes.splits.lost[split]), _links(boxes, split)
        if lost > rest or not boxes.allowed[i] & boxes.splits.kind[split]:
            continue
        if all(boxes.allowed[part] & WHOLE for part in parts):
            saved = int(boxes.cost[i]) - sum(int(boxes.cost[part]) for part in parts) - boxes.lost_cost * lost
            best = min(best, (-saved / max(lost, 1), split), key=lambda found: found[0])
    return best


def _plain(boxes: BoxSpace, choice: Ints, rest: int) -> tuple[list[int], int]:
    """Return the boxes that are published in the end, and the cost before the last round."""
    while True:
        whole, spent = _published(boxes, choice), 0
        offers = [(*_best_split(boxes, i, rest), i) for i in whole]
        for gain, split, i in sorted(offers, key=lambda offer: (offer[0], offer[2])):
            lost = int(boxes.splits.lost[split])
            if gain < 0 and lost <= rest - spent:
                choice[i], spent = split, spent + lost
                choice[_links(boxes, split)] = PUBLISH
        if spent == 0:
            return _published(boxes, choice), _cost(boxes, whole)
        rest -= spent


def _cost(boxes: BoxSpace, whole: list[int]) -> int:
    suppressed = boxes.total - int(boxes.volume[whole].sum())
    return int(boxes.cost[whole].sum()) + boxes.lost_cost * suppressed


def _spend(boxes: BoxSpace, best: BoxSolution, rest: int) -> tuple[list[int], int]:
    before = _cost(boxes, _published(boxes, best.choice))
    slack = boxes.spend_slack(best, rest)
    return slack.published.tolist(), before - slack.saved + boxes.lost_cost * slack.spent


@pytest.mark.parametrize("objective", ["generalization", "reconstruction"])
@pytest.mark.parametrize("regions", ["trees", "rectangles"])
def test_slack_is_spent_as_by_a_plain_loop(objective: Objective, regions: str) -> None:
    flows = make_profile("nyc", np.random.default_rng(5), 1)
    boxes = BoxSpace.of(flows, 0, getattr(RegionSpace, regions)(flows, objective), 40, objective)
    changed = 0
    for share in (0, 1, 10, 40):
        best = boxes.solve_for_budget(boxes.total * share // 100)
        for rest in (0, 7, boxes.total // 50):
            mine, twin = replace(best, choice=best.choice.copy()), best.choice.copy()
            assert _spend(boxes, mine, rest) == _plain(boxes, twin, rest)
            assert np.array_equal(mine.choice, twin)
            changed += not np.array_equal(mine.choice, best.choice)
    assert changed > 3


@pytest.mark.parametrize("regions", ["trees", "rectangles"])
def test_equal_gains_are_taken_in_the_order_of_boxes(regions: str) -> None:
    flows = make_profile("nyc", np.random.default_rng(6), 1)
    made = BoxSpace.of(flows, 0, getattr(RegionSpace, regions)(flows), 40)
    cost = np.array(made.cost) // 2000 * 2000  # few different gains
    boxes = BoxSpace(**{**vars(made), "cost": cost})
    choice = np.full(len(boxes), PUBLISH, np.int64)
    twin, best = choice.copy(), BoxSolution(None, int(cost[-1]), 0, choice)
    assert _spend(boxes, best, boxes.total // 20) == _plain(boxes, twin, boxes.total // 20)
    assert np.array_equal(choice, twin)
