"""The compiler of kernels gives what numba's own gives: elements of arrays, numbers of all types, allocations, errors."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from llvmlite.binding import ffi
from numba.core.runtime import _nrt_python, rtsys

from crowdveil.kernels import _compiler, _jit, _shortcuts
from crowdveil.kernels._jit import dividing_kernel, kernel
from crowdveil.kernels._types import Floats, Ints


@kernel
def _third(values: Ints, at: int) -> int:
    """Return an element over 3; an error where there are fewer than three."""
    if len(values) < 3:
        raise ValueError("too few")
    found: int = values[at] // 3
    return found


@kernel
def take_elements(values: Any, at: Any) -> Any:
    """Read and write elements, from both ends."""
    taken = np.zeros(len(at), np.float64)
    for i in range(len(at)):
        taken[i] = values[at[i]]
        values[-1 - i] = values[i]
        taken[-1] += values[-2]
    return taken


@kernel
def extremes(a: Any, b: Any) -> Any:
    """Return the smaller and the larger number, and whole numbers of both."""
    three = min(a, b, 3), max(b, a, 3), min(3, b, a), max(a, 3, b)
    return min(a, b), max(a, b), min(b, a), max(b, a), int(a), int(b), three


@kernel
def with_literals(x: Any) -> Any:
    """Combine a number with literals, larger and smaller than its type."""
    return x + 1, x + 300, x - 70000, 3 * x, x // 2, x % 7, x / 4, x << 3, x >> 1, x & 5, x | 8, x < 2, x == 3, 1 + x


@kernel
def allocations(n: int) -> Any:
    """Allocate arrays of several types and dimensions."""
    table, flags = np.zeros((n, 2), np.int32), np.zeros(n, np.bool_)
    other = np.empty((n, 2), np.float32)
    other[:] = 1.5
    flags[n - 1] = True
    table[0, 1] = n
    return table, flags, other, np.zeros(n), np.full(n, 7)


@kernel
def filled(n: int, value: Any) -> Any:
    """Allocate arrays with a number in every place, of its own type and of others, and with those of the places."""
    return (
        np.full(n, value), np.full((2, n), value, np.float32), np.full(n, -1, np.int32), np.full(n, True, np.bool_),
        np.ones(n), np.ones((n, 1), np.int8), np.ones(n, np.bool_), np.arange(n), np.arange(n - 3), np.zeros((n, 2)),
    )  # fmt: skip


@kernel
def over_blocks(values: Ints, n: int) -> Any:
    """Use variables in other blocks than they are assigned in: further inside, after a loop, or in its next turn."""
    size, total, late = len(values), 0, 0
    for i in range(n):
        here = values[i % size]
        if i % 3 == 1:
            inside = here * 2
            for j in range(i):
                total += inside + values[j % size] * here
        if i % 3 == 1 and total > 0:
            late += inside
        while here > 2:
            here //= 2
            last = here - i
            if last < 0:
                break
        total += here
    return size, total, late, last if n > 2 else -1


@kernel
def replaced_arrays(n: int) -> Ints:
    """Replace arrays in a loop, and return one."""
    kept = np.zeros(1, np.int64)
    for i in range(n):
        other = np.empty(i + 1, np.int64)
        other[i] = kept[-1] + i
        kept = other if i % 3 else other[i:]
    return kept


@kernel
def rising(n: int) -> Ints:
    """Return the numbers from 0 to n - 1."""
    numbers = np.empty(n, np.int64)
    for i in range(n):
        numbers[i] = i
    return numbers


class Pair(NamedTuple):
    """Two arrays that kernels take together."""

    first: Ints
    second: Ints


@kernel
def _either(pair: Pair, which: int) -> Ints:
    """Return one of the given arrays."""
    first, second = pair
    return first if which else second


@kernel
def itself(values: Ints) -> Ints:
    """Return what is given."""
    return values


@kernel
def lent_arrays(pair: Pair, n: int) -> tuple[Ints, Pair, int]:
    """Return arrays that were given, some of them by way of other kernels and variables."""
    kept, total = pair.first, 0
    for i in range(n):
        second = itself(pair.second)
        total += second[i % len(second)] + kept[0]
        kept = _either(pair, i % 2) if i % 3 else second
    same = pair
    return kept, same, total


@kernel
def sum_of_thirds(values: Ints) -> int:
    """Call a kernel that can fail."""
    total = 0
    for i in range(len(values)):
        total += _third(values, i)
    return total


@kernel
def of_whole_arrays(a: Floats, b: Floats) -> Floats:
    """Compute with whole arrays, and with a comprehension."""
    squares = np.array([float(i) ** 2 for i in range(len(a))])
    result: Floats = a * b + squares - 2.0
    return result


@dividing_kernel
def quotient(a: float, b: float) -> float:
    """Divide, by zero too."""
    return a / b


@kernel
def checked_quotient(a: int, b: int) -> float:
    """Divide, but not by zero."""
    return a / b


@kernel
def _moved(values: Ints, by: int, last: bool) -> int:
    found: int = values[0] + by if by > 0 else values[-1 if last else 0] - by
    return found


def moved_by_values_and_literals(values: Ints) -> tuple[int, int, int]:
    """Call a kernel with literals and with numbers of the same types."""
    return _moved(values, 3, True), _moved(values, -3, last=False), _moved(values, values[1], values[0] < 0)


@cache
def _plain(compiled: Any) -> Any:
    """Return what numba's own compiler makes of a kernel, kept on the disk under another name than the kernel's own code."""
    function = FunctionType(compiled.py_func.__code__, compiled.py_func.__globals__)
    function.__qualname__ = f"plain_{function.__name__}"
    return numba.njit(cache=True)(function)


def _equal(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            _equal(x, y)
    else:
        np.testing.assert_array_equal(a, b)
        assert getattr(a, "dtype", None) == getattr(b, "dtype", None)


def test_code_of_both_compilers_is_kept_apart() -> None:
    ours, theirs = (made._cache._cache_file._index_name for made in (extremes, _plain(extremes)))  # type: ignore[attr-defined]
    assert ours != theirs


@pytest.mark.parametrize(
    ("dtype", "index"),
    [
        ("int8", "int64"),
        ("int32", "int32"),
        ("int64", "uint64"),
        ("uint64", "int64"),
        ("float32", "int32"),
        ("bool", "uint8"),
    ],
)
def test_elements_of_arrays(dtype: str, index: str) -> None:
    at = np.array([0, 3, 2], index)
    given = np.array([1, 0, 7, 1, 0, 1], dtype)
    ours, theirs = given.copy(), given.copy()
    _equal(take_elements(ours, at), _plain(take_elements)(theirs, at))
    _equal(ours, theirs)


def test_elements_counted_from_the_end_and_of_arrays_with_gaps() -> None:
    at = np.array([-1, -6, 2])
    ours, theirs = np.arange(12), np.arange(12)
    _equal(take_elements(ours[::2], at), _plain(take_elements)(theirs[::2], at))
    _equal(ours, theirs)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (3, -2),
        (3, 2.5),
        (-7.9, 7),
        (np.int32(4), np.int64(2**40)),
        (np.uint8(200), np.int8(-3)),
        (0.0, -0.0),
    ],
)
def test_extremes_and_whole_numbers(a: Any, b: Any) -> None:
    _equal(extremes(a, b), _plain(extremes)(a, b))


def test_extremes_of_nan_depend_on_the_order_as_in_python() -> None:
    @kernel
    def both(a: float, b: float) -> tuple[float, float]:
        return min(a, b), max(a, b)

    for a, b in ((np.nan, 1.0), (1.0, np.nan)):
        _equal(both(a, b), (min(a, b), max(a, b)))


@pytest.mark.parametrize("x", [5, -5, np.int8(-9), np.uint8(250), np.int32(2**31 - 1), np.uint64(2**63), True])
def test_operators_with_literals(x: Any) -> None:
    _equal(with_literals(x), _plain(with_literals)(x))


def test_a_kernel_is_not_compiled_for_the_values_of_arguments() -> None:
    _jit.compiler()
    compiled = numba.njit(**_compiler._pipeline())(moved_by_values_and_literals)  # never from the disk
    assert compiled(np.array([10, -5, 7])) == (13, 13, 15)
    assert len(_moved.linked.overloads) == 1  # type: ignore[attr-defined]


def test_allocated_arrays() -> None:
    _equal(allocations(3), _plain(allocations)(3))
    with pytest.raises(ValueError, match="negative"):
        allocations(-1)


@pytest.mark.parametrize("value", [5, -2.5, np.int16(-3), np.uint8(200), False])
def test_filled_arrays(value: Any) -> None:
    for n in (0, 1, 5):
        _equal(filled(n, value), _plain(filled)(n, value))
    with pytest.raises(ValueError, match="negative"):
        filled(-1, value)


@pytest.mark.parametrize("n", [0, 1, 3, 20])
def test_variables_of_several_blocks(n: int) -> None:
    values = np.array([7, 1, 12, 3, -5])
    assert over_blocks(values, n) == over_blocks.py_func(values, n)  # type: ignore[attr-defined]


def test_no_array_is_freed_too_early_or_never() -> None:
    _equal(replaced_arrays(7), _plain(replaced_arrays)(7))
    _check_allocations(replaced_arrays)


def test_given_arrays_are_neither_freed_nor_held() -> None:
    given = [np.arange(1000), np.arange(2000)]
    before = [sys.getrefcount(array) for array in given]
    for n in range(7):
        kept, same, total = lent_arrays(Pair(*given), n)
        assert len(kept) == _kept_length(n) and total == sum(range(n))
        assert kept.tolist() == list(range(len(kept)))
        assert [array.tolist() for array in same] == [array.tolist() for array in given]
        assert itself(given[0]).tolist() == given[0].tolist()
        del kept, same
        assert [sys.getrefcount(array) for array in given] == before


def test_arrays_of_kernels_live_as_long_as_they_are_used() -> None:
    found = [lent_arrays(Pair(rising(1000), rising(2000)), n) for n in range(30)]
    for n, (kept, same, _) in enumerate(found):
        assert kept.tolist() == list(range(_kept_length(n)))
        assert [array.tolist() for array in same] == [list(range(1000)), list(range(2000))]
    del found, kept, same
    _check_allocations(lambda n: lent_arrays(Pair(rising(n + 1), rising(n + 2)), n))


class Nested(NamedTuple):
    """A number between arrays, one of them further inside, next to two of another type."""

    first: Ints
    count: int
    pair: tuple[Floats, Ints]
    more: tuple[Floats, Floats]


@kernel
def nested_arrays(n: int) -> Any:
    """Make a structure of structures several times, and return parts of the last two."""
    made = Nested(np.zeros(n + 1, np.int64), 0, (np.ones(2), np.zeros(3, np.int64)), (np.ones(4), np.ones(5)))
    kept = made.pair[0]
    for i in range(n):
        kept = made.pair[0]
        floats = np.empty(i + 1, np.float64)
        floats[:] = i
        made = Nested(made.first, made.count + 1, (floats, made.first), (kept, made.more[0]))
    return made, kept


def test_arrays_of_nested_structures_are_freed_once() -> None:
    made, kept = nested_arrays(4)
    assert made.count == 4 and made.first.tolist() == [0] * 5 == made.pair[1].tolist()
    assert made.pair[0].tolist() == [3.0] * 4 and kept.tolist() == [2.0] * 3 == made.more[0].tolist()
    _check_allocations(nested_arrays)


def test_compiling_leaves_other_libraries_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "scipy.linalg.cython_blas"
    monkeypatch.delitem(sys.modules, "numba.np.arraymath")
    monkeypatch.delitem(sys.modules, name, raising=False)
    told = ffi.lib._lock._cblist
    with _shortcuts.no_linear_algebra(), _shortcuts.unreported_locks():
        assert sys.modules[name].__spec__ is None and ffi.lib._lock._cblist == []
    assert name not in sys.modules and ffi.lib._lock._cblist is told and told


def _kept_length(n: int) -> int:
    """Return the length of what `lent_arrays` keeps of arrays of 1000 and 2000 numbers."""
    return 1000 if n == 0 or ((n - 1) % 2 and (n - 1) % 3) else 2000


def _check_allocations(call: Callable[[int], Any]) -> None:
    """Call a kernel, and check that all of its arrays are freed."""
    call(1)
    _nrt_python.memsys_enable_stats()
    gc.collect()
    gc.disable()  # arrays of other tests would be freed in between
    try:
        before = rtsys.get_allocation_stats()
        for n in range(50):
            call(n)
        after = rtsys.get_allocation_stats()
    finally:
        gc.enable()
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_errors_of_kernels_inside() -> None:
    assert sum_of_thirds(np.array([3, 7, 12])) == 7
    with pytest.raises(ValueError, match="too few"):
        sum_of_thirds(np.array([3, 7]))


def test_whole_arrays_and_comprehensions() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3])
    _equal(of_whole_arrays(a, b), _plain(of_whole_arrays)(a, b))


def test_division_by_zero_depends_on_the_kernel_alone() -> None:
    assert quotient(1.0, 0.0) == np.inf
    with pytest.raises(ZeroDivisionError):
        checked_quotient(1, 0)


@pytest.mark.parametrize("what", ["other parts", "later", "earlier"])
def test_another_numba_compiles_with_its_own_compiler(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if what == "other parts":
        monkeypatch.setitem(sys.modules, "crowdveil.kernels._pipeline", None)
    else:
        short = (0, 69) if what == "later" else (0, 60)
        monkeypatch.setattr(numba, "version_info", numba.version_info._replace(short=short))
    _compiler._pipeline.cache_clear()
    try:
        assert _compiler._pipeline() == {}
        again: Any = _jit._as_kernel(extremes.py_func)  # type: ignore[attr-defined]
        assert again.compiled.py_func(1, 2) == again.compiled(1, 2)
    finally:
        _compiler._pipeline.cache_clear()


@pytest.mark.parametrize("names", [("first", "second"), ("second", "first")])
def test_a_kernel_on_the_disk_becomes_part_of_another_one(tmp_path: Path, names: tuple[str, str]) -> None:
    start = "from crowdveil.kernels._jit import kernel\n"
    (tmp_path / "shared.py").write_text(
        start + "import numpy as np\n@kernel\ndef shared(x):\n    if x < 0:\n        raise ValueError('below')\n"
        "    return np.zeros(x, np.bool_)\n"
    )
    (tmp_path / "first.py").write_text(
        start + "from shared import shared\n@kernel\ndef call(x):\n    return len(shared(x))\n"
    )
    (tmp_path / "second.py").write_text("from shared import shared as call\n")
    code = (
        "import numpy as np\nfrom {0} import call\nprint(np.size(call(3)))\n"
        "try:\n    call(-1)\nexcept ValueError as error:\n    print(error)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for name in (*names, *names):
        done = subprocess.run(
            [sys.executable, "-c", code.format(name)], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == ["1" if name == "first" else "3", "below"]
