"""Figures of solvers in the manifest: rounded so that no volume of an unpublished partition can be computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crowdveil.engine.progress import no_progress
from crowdveil.experiments.profiles import make_profile
from crowdveil.io.flows import with_tree
from crowdveil.registry import find_method
from crowdveil.solve.od.targets import round_gap

ROUND = {0.0, *(float(f"{digit}e{e}") for e in range(-2, 4) for digit in (1, 2, 5))}


def test_gaps_are_rounded_up_to_the_next_round_value() -> None:
    found = [round_gap(x) for x in (-3.0, 0.0, 1e-9, 0.01, 0.0101, 0.02, 0.5, 0.51, 23.409, 1234.0)]
    assert found == [0, 0, 0.01, 0.01, 0.02, 0.02, 0.5, 1, 50, 2000]
    for percent in np.random.default_rng(1).exponential(5, 200).tolist():
        assert percent <= round_gap(percent) <= max(2.5 * percent, 0.01) and round_gap(percent) in ROUND


@pytest.mark.parametrize("method", ["joint", "atg-dual", "atg-exact"])
def test_an_adversary_does_not_get_the_cost_of_another_partition(method: str) -> None:
    """The cost of the published partition is public, and cost / (1 + gap) would be that of one that is not."""
    flows = with_tree(make_profile("nyc", np.random.default_rng(5), 1), "ward")
    record = find_method(method)
    target: dict[str, Any] = {} if method == "joint" else {"v_target": 200}
    release = record.run(flows, record.params.checked({"k": 10, **target}), np.random.default_rng(0), no_progress)
    gaps = {name: value for name, value in release.facts.items() if "gap" in name}
    assert gaps and set(gaps.values()) <= ROUND
