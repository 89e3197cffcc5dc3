"""Machine code from the disk gives what compiled kernels give, and only where it was made for the same."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from crowdveil.kernels import _compiler, _jit, _stored
from crowdveil.kernels._jit import Kernel, kernel, lowest_bit
from crowdveil.kernels._types import Floats, Ints


class _Pair(NamedTuple):
    values: Floats
    word: int


class _Nested(NamedTuple):
    pair: _Pair
    factor: float


@kernel
def sorted_part(numbers: Ints, nested: _Nested) -> tuple[Ints, _Pair, float]:
    if len(numbers) == 0:
        raise ValueError("no numbers")
    pair = _Pair(nested.pair.values[:2].copy(), lowest_bit(nested.pair.word))
    return np.sort(numbers), pair, np.exp(nested.factor)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the compiled kernel of this module, and the file in it."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(numba.config, "CACHE_DIR", str(folder))
        patched.setenv("NUMBA_CACHE_DIR", str(folder))
        _again()(*_arguments())
        (file,) = folder.rglob("*.kernel")
        yield file


def _arguments(*numbers: int) -> tuple[Ints, _Nested]:
    return np.array(numbers or (3, 1, 2), np.int64), _Nested(_Pair(np.arange(3.0), 8), 1.5)


def _again() -> Any:
    """The kernel as a new process has it."""
    made: Any = _jit._as_kernel(sorted_part.py_func)  # type: ignore[attr-defined]
    return made


def test_code_from_the_disk_gives_the_same_without_the_compiler(kept: Path) -> None:
    made = _again()
    numbers, pair, power = made(*_arguments())
    assert "compiled" not in vars(made) and len(made.loaded) == 1
    assert numbers.dtype == np.int64 and numbers.tolist() == [1, 2, 3]
    assert isinstance(pair, _Pair) and pair.values.tolist() == [0, 1] and pair.word == 3 and power == np.exp(1.5)
    with pytest.raises(ValueError, match="no numbers"):
        made(np.empty(0, np.int64), _arguments()[1])
    before = sys.getrefcount(numbers.dtype)
    for _ in range(100):
        made(*_arguments())
    assert sys.getrefcount(numbers.dtype) < before + 50


def test_other_types_are_compiled(kept: Path) -> None:
    made = _again()
    frozen = _arguments()[0]
    frozen.setflags(write=False)
    assert made._from_disk(_stored.key_of((frozen, _arguments()[1]))) is None
    assert made._from_disk(_stored.key_of(_arguments())) is not None


@pytest.mark.parametrize("fault", ["a byte", "cut", "empty", "no header", "other machine", "other sources"])
def test_code_that_is_damaged_or_made_for_something_else_is_not_run(
    fault: str, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kept.read_bytes()
    made = _again()
    if fault == "other machine":
        monkeypatch.setattr(_stored, "machine", lambda: ["another"])
    elif fault == "other sources":
        made.stamp = ["another"]
    else:
        damaged = {
            "a byte": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
            "cut": whole[:-1], "empty": b"", "no header": b"{}\n" + whole,
        }  # fmt: skip
        kept.write_bytes(damaged[fault])
    try:
        assert made._from_disk(_stored.key_of(_arguments())) is None
    finally:
        kept.write_bytes(whole)


@pytest.mark.parametrize("changed", ["_runtime", "machine", "link"])
def test_another_numba_is_left_to_itself(changed: str, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise AttributeError("c_helpers")

    monkeypatch.setattr(_stored, changed, missing)
    made = _again()
    assert made._from_disk(_stored.key_of(_arguments())) is None and made.loaded == []


@pytest.mark.parametrize(
    "value",
    [
        None, 1, True, 1.5, np.int32(4), np.uint8(1), np.float32(1), np.bool_(True), np.arange(3), np.arange(4.0)[::2],
        np.zeros((2, 3), order="F"), np.zeros((2, 3)), np.zeros(3, bool), np.frombuffer(bytes(16), np.int64), _arguments()[1],
    ],
    ids=repr,
)  # fmt: skip
def test_keys_name_the_types_that_numba_compiles_for(value: object) -> None:
    key = _stored.key_of([value])
    assert key is not None
    assert _stored.described(key) == [_compiler.description(numba.typeof(value))]


@pytest.mark.parametrize(
    "value",
    [
        2**63,
        -(2**63),
        "x",
        np.frombuffer(bytes(17), np.uint8)[1:].view(np.int64),
        (1, 2),
        [1],
        _Pair(np.arange(2), 2**64),
        np.arange(2).view(np.recarray),
        np.arange(2, dtype=">i8"),
    ],
)
def test_other_arguments_are_left_to_numba(value: object) -> None:
    assert _stored.key_of([value]) is None


def test_files_are_read_from_where_numba_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    assert Path(_again()._cache.cache_path) in _stored.folders(sorted_part.py_func)  # type: ignore[attr-defined]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert [Path(_again()._cache.cache_path)] == _stored.folders(sorted_part.py_func)  # type: ignore[attr-defined]


def test_arguments_by_name_and_kernels_by_reference() -> None:
    @kernel
    def less(x: int, y: int = 1) -> int:
        return x - y

    assert (less(5), less(y=2, x=5), less(5, 3)) == (4, 3, 2)
    assert isinstance(sorted_part, Kernel) and pickle.loads(pickle.dumps(sorted_part)) is sorted_part


def test_modules_of_kernels_are_imported_without_numba() -> None:
    code = (
        "import sys\nimport crowdveil.kernels.od.tree_boxes, crowdveil.kernels.trajectory.mdav, crowdveil.kernels.ordering\n"
        "sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_quick_keys_differ_where_keys_do() -> None:
    numbers: Any = np.arange(4)
    frozen: Any = np.arange(4.0)
    frozen.flags.writeable = False
    every: list[Any] = [
        numbers, frozen, numbers[::2], numbers.reshape(2, 2), numbers.reshape(2, 2).T, np.ones((2, 2, 2), np.int64),
        numbers.astype(np.int32), numbers * 1.0, numbers.astype(">i8"), 1, 1.0, True, 2**63, np.int32(1), np.float32(1),
        _Pair(numbers * 1.0, 8), _Pair(frozen, 8), _Pair(numbers, 8), _Nested(_Pair(frozen, 8), 1.5), "text", None,
    ]  # fmt: skip
    of_quick: dict[Any, Any] = {}
    for value in every:
        key, quick = _stored.key_of([value]), _stored.quick_key([value])
        assert (quick is None) <= (key is None)
        if quick is not None:
            assert of_quick.setdefault(quick, key) == key
    assert len(set(of_quick.values())) == len({_stored.key_of([value]) for value in every})
