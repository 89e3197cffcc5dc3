"""Compiled kernels are kept on disk; what is kept must be what the sources say."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest

from crowdveil.kernels import _jit, cached
from crowdveil.kernels._jit import bind, kernel, lowest_bit
from crowdveil.kernels._types import Floats

IMPORT = "from crowdveil.kernels._jit import kernel\n"
HELPER = IMPORT + "@kernel\ndef helper(x):\n    return x + {add}\n"
MIDDLE = IMPORT + "from helper import helper\n\n@kernel\ndef middle(x):\n    return helper(x)\n"
USER = IMPORT + "from middle import middle\n\n@kernel\ndef user(x):\n    return 10 * middle(x)\n"


def _ask(folder: Path) -> tuple[int, int]:
    """What the kernel says of 1 in a fresh process, and how many compiled versions it took from disk."""
    code = "from user import user; print(user(1), len(user.loaded))"
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kept")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    answer, hits = done.stdout.split()
    return int(answer), int(hits)


def test_a_kernel_is_compiled_again_when_one_that_it_calls_changes(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HELPER.format(add=1))
    (tmp_path / "middle.py").write_text(MIDDLE)
    (tmp_path / "user.py").write_text(USER)
    assert _ask(tmp_path) == (20, 0)
    assert _ask(tmp_path) == (20, 1)
    (tmp_path / "helper.py").write_text(HELPER.format(add=2))
    assert _ask(tmp_path) == (30, 0)


@pytest.mark.slow
def test_a_kernel_is_compiled_again_when_the_fields_of_its_arrays_change_places(tmp_path: Path) -> None:
    made = "from typing import NamedTuple\n\nclass Both(NamedTuple):\n    {0}: int\n    {1}: int\n"
    (tmp_path / "both.py").write_text(made.format("first", "second"))
    (tmp_path / "user.py").write_text(
        IMPORT + "from both import Both\n\n@kernel\ndef inner(x):\n    return x.first\n\n"
        "@kernel\ndef user(x):\n    return inner(Both(x, x + 1))\n"
    )
    assert _ask(tmp_path) == (1, 0)
    assert _ask(tmp_path) == (1, 1)
    (tmp_path / "both.py").write_text(made.format("second", "first"))
    assert _ask(tmp_path) == (2, 0)


@pytest.mark.slow
def test_a_kernel_from_the_disk_has_arrays_and_errors_and_leaves_the_compiler_ready(tmp_path: Path) -> None:
    """Loading leaves out what only the compiler needs: kernels that allocate, raise, or are compiled after it must work."""
    (tmp_path / "user.py").write_text(
        "import numpy as np\n" + IMPORT + "@kernel\ndef half(x):\n    return np.sort(x)[: len(x) // 2].copy()\n\n"
        "@kernel\ndef user(x):\n    if len(x) == 0:\n        raise ValueError('empty')\n    return half(x)\n"
    )
    code = (
        "import sys, numpy as np\nfrom user import user\nprint(user(np.array([3, 1, 2, 0])).tolist())\n"
        "loaded = len(user.loaded), 'numba' in sys.modules\n"
        "try:\n    user(np.empty(0, np.int64))\nexcept ValueError as error:\n    print(error)\n"
        "print(*loaded)\nprint(user(np.array([3.5, 1.5])).tolist())"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        said.append(done.stdout.splitlines())
    assert said[0] == ["[0, 1]", "empty", "0 True", "[1.5]"]
    assert said[1] == ["[0, 1]", "empty", "1 False", "[1.5]"]


@kernel
def lowest_of(word: int) -> int:
    found: int = lowest_bit(word)
    return found


@pytest.mark.parametrize("place", [0, 1, 17, 62, 63])
def test_the_lowest_bit_of_a_word(place: int) -> None:
    word = np.array([1 << place], np.uint64).view(np.int64)[0]
    high = np.array([(1 << place) | (1 << 63)], np.uint64).view(np.int64)[0]
    assert lowest_of(word) == place
    assert lowest_of(high) == place


def test_a_folder_of_compiled_kernels_is_private(tmp_path: Path) -> None:
    made = _jit._private_folder(tmp_path)
    assert made.stat().st_mode & 0o777 == 0o700
    assert _jit._private_folder(tmp_path) == made


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file", "another's"])
def test_a_folder_of_compiled_kernels_that_another_could_have_made_is_not_used(fault: str, tmp_path: Path) -> None:
    expected = tmp_path / f"crowdveil-kernels-{os.getuid()}"
    if fault == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        expected.symlink_to(tmp_path / "theirs")
    elif fault == "a file":
        expected.touch()
    else:
        expected.mkdir(mode=0o700)
        if fault == "open to others":
            expected.chmod(0o777)
        elif os.getuid() == 0:
            os.chown(expected, 12345, 12345)
        else:
            pytest.skip("only root can give a folder away")
    made = _jit._private_folder(tmp_path)
    assert made != expected and made.stat().st_mode & 0o777 == 0o700 and made.stat().st_uid == os.getuid()


def test_a_kernel_works_where_it_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    @kernel
    def doubled(x: int) -> int:
        return 2 * x

    monkeypatch.setattr(type(doubled._cache), "_save_overload", refuse, raising=True)  # type: ignore[attr-defined]
    assert doubled(4) == 8


def test_kernels_that_were_missed_are_reported_and_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing that an earlier run of the tests compiled, and no kernels but this one.
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_jit, "_sources", {})

    @kernel
    def summed(values: object, by: float) -> float:
        return values.sum() * by  # type: ignore[attr-defined, no-any-return]

    assert summed(np.arange(3.0), 2.0) == 6
    frozen = np.arange(4)
    frozen.setflags(write=False)
    assert summed(frozen, 1) == 6
    reported = cached.missed()
    assert json.loads(json.dumps(reported)) == reported and len(reported) == 2
    understood = cached.understood(reported)
    assert [kinds for _, kinds in understood] == list(summed.overloads) and all(k is summed for k, _ in understood)  # type: ignore[attr-defined]
    cached.compile_all(understood)


class _Pair(NamedTuple):
    values: Floats
    by: float


class _Nested(NamedTuple):
    pair: _Pair
    count: int


def test_structures_of_arrays_are_reported_and_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_jit, "_sources", {})

    @kernel
    def summed(nested: _Nested) -> float:
        return nested.pair.values.sum() * nested.pair.by + nested.count  # type: ignore[no-any-return]

    assert summed(_Nested(_Pair(np.arange(3.0), 2.0), 4)) == 10
    reported = cached.missed()
    assert json.loads(json.dumps(reported)) == reported and len(reported) == 1
    assert [kinds for _, kinds in cached.understood(reported)] == list(summed.overloads)  # type: ignore[attr-defined]
    (module, name, (nested,)) = reported[0]
    ((of, fields),) = nested.items()
    for wrong in ({"os:stat_result": fields}, {of: fields[:1]}, {of: "int64"}, {of: [nested, "int64"]}, {}):
        assert cached.understood([[module, name, [wrong]]]) == []


@pytest.mark.parametrize(
    "reported",
    [
        None, 5, "x", [1], [["os", "system", ["int64"]]], [["crowdveil.kernels.ordering", "spread", ["__import__('os')"]]],
        [["crowdveil.kernels.ordering", "spread", [["int64", 1, "C"]]]], [["crowdveil.kernels.ordering", {}, []]],
        [["crowdveil.kernels.ordering", "spread", [["int64", 99, "C", True, True]]]],
    ],
)  # fmt: skip
def test_nothing_is_compiled_for_what_means_nothing(reported: object) -> None:
    import crowdveil.kernels.ordering  # noqa: F401

    assert cached.understood(reported) == []


@kernel
def weighted_sum(pair: _Pair, values: Floats, add: float) -> float:
    total = pair.by + add
    for i in range(len(values)):
        total += pair.values[i] * values[i]
    return total


def test_a_kernel_with_its_first_arguments_looks_at_the_others_at_every_call() -> None:
    first = _Pair(np.array([2.0, 3.0]), 100.0)
    whole, parts = np.array([5, 7]), np.array([0.5, 0.25])
    alone = bind(weighted_sum, first)
    bound = pickle.loads(pickle.dumps(alone))
    assert isinstance(bound, _jit.BoundKernel) and len(alone._ready) == 0  # type: ignore[attr-defined]
    for _ in range(2):
        assert bound(whole, 1.0) == 132.0
        assert bound(parts, 1.0) == 102.75
        assert bound(np.array([5, 0, 7, 0])[::2], 1) == 132.0
    assert len(bound._ready) == 3
    assert bind(max, 3)(7) == 7  # plain Python, as kernels are where nothing is compiled


@kernel
def _one_more(x: int) -> int:
    return x + 1


@kernel
def two_more(x: int) -> int:
    return _one_more(_one_more(x))


def test_a_kernel_for_kernels_alone_refuses_to_be_called_from_python() -> None:
    for _ in range(2):
        with pytest.raises(TypeError, match="by kernels alone"):
            _one_more(1)
        assert two_more(1) == 3


def test_no_code_but_kernels_names_a_kernel_that_is_for_them_alone() -> None:
    root = Path(_jit.__file__).parents[1]
    inner = {
        (str(Path(file).relative_to(root).with_suffix("")).replace("/", "."), name)
        for file in (root / "kernels").rglob("*.py")
        for name in re.findall(r"^@inner_kernel\ndef (\w+)", file.read_text(), re.MULTILINE)
    }
    assert len(inner) > 5
    for file in set(root.rglob("*.py")) - set((root / "kernels").rglob("*.py")):
        for module, names in re.findall(r"from crowdveil\.(kernels[\w.]*) import (\([^)]*\)|.+)", file.read_text()):
            for name in re.findall(r"\w+", names):
                assert (module, name) not in inner and not name.startswith("_"), f"{file}: {name}"


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_a_kernel_gives_the_same_as_plain_python(rows: int) -> None:
    from crowdveil.kernels.trees import collapse, post_order

    assert _jit.plain_if_small(post_order, _jit.SMALL + 1) is post_order
    parent = np.array([-1, *(i // 2 for i in range(rows - 1))], np.int32)
    order = post_order(parent)
    assert np.array_equal(_jit.plain_if_small(post_order, rows)(parent), order)
    for one, other in zip(_jit.plain_if_small(collapse, rows)(parent, order), collapse(parent, order), strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)
