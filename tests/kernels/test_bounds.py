"""Kernels that build and solve boxes stay inside of their arrays, which compiled code does not check by itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUNS = """
import numpy as np
from dataclasses import replace
from crowdveil.registry import find_method
from crowdveil.experiments.profiles import make_profile

def solved(name, data, **parameters):
    method = find_method(name)
    release = method.run(data, method.params.checked(parameters), np.random.default_rng(0), lambda *_: None)
    return len(release.volume), int(release.volume.sum())

flows = make_profile("nyc", np.random.default_rng(1), 3)
for share in (0.02, 0.3):
    data = flows.where(np.random.default_rng(2).random(len(flows)) < share)
    for k in (2, 10):
        print(solved("joint", data, k=k), solved("atg-dual", data, k=k, v_target=100.0))
        print(solved("joint", data, k=k, splits="dyadic"), solved("joint", data, k=k, time_partition="adaptive"))
        print(solved("joint", data, k=k, splits="free"), solved("oigh", data, k=k))
"""


@pytest.mark.slow
def test_no_index_is_outside(tmp_path: Path) -> None:
    """The same runs with checked indices and without: an index outside raises an error there."""
    found = []
    for checked in ("0", "1"):
        environment = {**os.environ, "NUMBA_BOUNDSCHECK": checked, "NUMBA_CACHE_DIR": str(tmp_path / checked)}
        done = subprocess.run(
            [sys.executable, "-c", RUNS], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1] and found[0]


def test_an_index_outside_is_found(tmp_path: Path) -> None:
    """With checked indices, an index that is too large is an error of kernels inside of others, too."""
    (tmp_path / "outside.py").write_text(
        "import numpy as np\nfrom crowdveil.kernels._jit import kernel\n"
        "@kernel\ndef _at(values, i):\n    return values[i]\n"
        "@kernel\ndef read(values, i):\n    return _at(values, i) + 1\n"
    )
    environment = {
        **os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "kept"), "PYTHONPATH": str(tmp_path)
    }  # fmt: skip
    code = "import numpy as np\nfrom outside import read\nprint(read(np.arange(3), 2))\nread(np.arange(3), 3)\n"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "3\n" and "IndexError" in done.stderr
