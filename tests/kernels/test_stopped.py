"""The long kernels of every method end where an interrupt asks for it, and say nothing that is half done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from towns import people

from crowdveil.interrupts import KernelStoppedError, kernels_stopped
from crowdveil.model.flows import Flows
from crowdveil.model.tessellation import voronoi_zones
from crowdveil.progress import no_progress
from crowdveil.registry import find_method

CASES: list[tuple[str, dict[str, Any]]] = [
    ("joint", {}),
    ("joint", {"splits": "dyadic"}),
    ("atg-dual", {}),
    ("atg-soft", {}),
    ("atg-coupled", {}),
    ("atg-exact", {}),
    ("oigh", {}),
    ("mondrian", {}),
    ("glove", {}),
    ("protected-generalization", {}),
]


def _flows() -> Flows:
    rng = np.random.default_rng(4)
    zones = voronoi_zones(np.arange(12), 10 + rng.uniform(0, 0.1, 12), 50 + rng.uniform(0, 0.1, 12))
    origin, destination = np.divmod(np.sort(rng.choice(144, 60, replace=False)), 12)
    return Flows.from_rows(zones, np.zeros(60, np.int64), origin, destination, rng.integers(1, 9, 60), step_s=3600)


@pytest.mark.parametrize(("name", "given"), CASES, ids=[" ".join([n, *map(str, g.values())]) for n, g in CASES])
def test_a_method_ends_in_its_long_kernel(name: str, given: dict[str, Any]) -> None:
    method = find_method(name)
    data: Any = _flows() if method.takes is Flows else people(np.random.default_rng(1))
    params = method.params.checked({"k": 6 if method.takes is Flows else 2, **given})
    with kernels_stopped(), pytest.raises(KernelStoppedError):
        method.run(data, params, np.random.default_rng(1), no_progress)
    assert len(method.run(data, params, np.random.default_rng(1), no_progress)) > 0
