"""Functions of `pyarrow.compute` that are made when they are asked for are those that it makes at its import."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.compute as plain
import pytest

from crowdveil.startup.lazy_compute import AT_ONCE, MAKE, NAME, FunctionsOnDemand


def _loader() -> Any:
    spec = find_spec(NAME)
    assert spec is not None
    loader = spec.loader
    return getattr(loader, "_loader", loader)


def _made(loader: Any) -> ModuleType:
    module = ModuleType(NAME)
    FunctionsOnDemand(loader).exec_module(module)
    return module


@pytest.fixture(scope="module")
def whole() -> ModuleType:
    module = ModuleType(NAME)
    _loader().exec_module(module)
    return module


def test_every_function_is_there_with_its_signature(whole: ModuleType) -> None:
    late = _made(_loader())
    names = [name for name, value in vars(whole).items() if inspect.isfunction(value) and not name.startswith("_")]
    assert len(names) > 250 and len(set(names) & set(vars(late))) < 20
    for name in names:
        ours, theirs = getattr(late, name), getattr(whole, name)
        assert inspect.signature(ours) == inspect.signature(theirs) and ours.__doc__ == theirs.__doc__, name
        assert ours is getattr(late, name)
    assert late.function_registry is plain.function_registry
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        late.unknown  # noqa: B018


def test_functions_do_the_same() -> None:
    late = _made(_loader())
    assert late.sum([1, 2, 3]).as_py() == 6 and late.and_([True], [False]).to_pylist() == [False]
    assert late.is_in([1, 2], value_set=plain.unique([2])).to_pylist() == [False, True]
    assert late.fill_null(pa.array([None, 1]), 5).to_pylist() == [5, 1]
    assert not hasattr(late, "hash_sum")


def test_no_function_of_the_module_calls_one_that_may_not_be_there_yet(whole: ModuleType) -> None:
    own = [value for value in vars(whole).values() if inspect.isfunction(value) and value.__module__ == NAME]
    names = {name for value in own if "<" not in value.__qualname__ for name in value.__code__.co_names}
    assert not names & set(plain.list_functions()) - set(AT_ONCE) - {"list_functions", "index"} - _attributes(whole)


def _attributes(module: ModuleType) -> set[str]:
    """Names after a dot, which are not names of the module."""
    tree = ast.parse(_loader().get_source(NAME))
    loaded = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} - loaded


@pytest.mark.parametrize("change", [(MAKE, "_make_all"), ('()["utf8_zero_fill"]', '()["abs"]')])
def test_a_module_that_is_another_than_expected_is_imported_as_it_is(change: tuple[str, str]) -> None:
    class Other:
        def exec_module(self, module: ModuleType) -> None:
            source = _loader().get_source(NAME)
            assert change[0] in source
            exec(compile(source.replace(*change), "compute", "exec"), vars(module))

    module = _made(Other())
    assert "abs" in vars(module) and "__getattr__" not in vars(module) and module.abs([-1]).to_pylist() == [1]


def test_commands_make_functions_on_demand() -> None:
    code = (
        "import sys\nfrom crowdveil.startup.unused_imports import leave_out_unused\nleave_out_unused()\n"
        "import pyarrow.compute as pc\nfrom pyarrow.compute import equal\nimport pyarrow as pa\n"
        "assert 'abs' not in vars(pc) and pc.abs(pa.array([-1])).to_pylist() == [1] and 'abs' in vars(pc)\n"
        "assert pa.array([3, 1]).sort().to_pylist() == [1, 3]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
