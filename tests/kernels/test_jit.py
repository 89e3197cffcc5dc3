"""Compiled kernels are kept on disk; what is kept must be what the sources say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from crowdveil.kernels._jit import kernel, lowest_bit

IMPORT = "from crowdveil.kernels._jit import kernel\n"
HELPER = IMPORT + "@kernel\ndef helper(x):\n    return x + {add}\n"
MIDDLE = IMPORT + "from helper import helper\n\n@kernel\ndef middle(x):\n    return helper(x)\n"
USER = IMPORT + "from middle import middle\n\n@kernel\ndef user(x):\n    return 10 * middle(x)\n"


def _ask(folder: Path) -> tuple[int, int]:
    """What the kernel says of 1 in a fresh process, and how many compiled versions it took from disk."""
    code = "from user import user; print(user(1), sum(user.stats.cache_hits.values()))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kept")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    answer, hits = done.stdout.split()
    return int(answer), int(hits)


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER.format(add=1))
    (tmp_path / "middle.py").write_text(MIDDLE)
    (tmp_path / "user.py").write_text(USER)
    assert _ask(tmp_path) == (20, 0)
    assert _ask(tmp_path) == (20, 1)
    (tmp_path / "helper.py").write_text(HELPER.format(add=2))
    assert _ask(tmp_path) == (30, 0)


@kernel
def _lowest(word: int) -> int:
    found: int = lowest_bit(word)
    return found


@pytest.mark.parametrize("place", [0, 1, 17, 62, 63])
def test_the_lowest_bit_of_a_word(place: int) -> None:
    word = np.array([1 << place], np.uint64).view(np.int64)[0]
    high = np.array([(1 << place) | (1 << 63)], np.uint64).view(np.int64)[0]
    assert _lowest(word) == place
    assert _lowest(high) == place
