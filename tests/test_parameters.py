"""Functions take few parameters: arrays that travel together are NamedTuples, options are records."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "crowdveil"
LIMIT, KERNEL_LIMIT = 12, 16
KEYWORD_INTERFACES = {
    "api/compare.py": {"compare"},
    "api/release.py": {"anonymize"},
    "io/flows.py": {"read_flows"},
    "io/trajectories.py": {"read_trajectories"},
}
"""Functions whose keyword arguments are the documented options of a call or a command, one each."""
SIGNATURE = re.compile(r"\bdef \w+\((.*?)\)[^\n]*:\n", re.DOTALL)


def _functions(tree: ast.AST) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            a = node.args
            listed = [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]
            found.append((node.name, sum(x is not None for x in listed)))
    return found


@pytest.mark.parametrize("package", sorted(p.name for p in SOURCE.iterdir() if p.is_dir() and p.name != "__pycache__"))
def test_functions_take_few_parameters(package: str) -> None:
    limit = KERNEL_LIMIT if package == "kernels" else LIMIT
    for path in (SOURCE / package).rglob("*.py"):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text("utf-8")
        if not any(listed.count(",") >= limit for listed in SIGNATURE.findall(text)):
            continue  # parsing all files takes seconds
        many = {(f, n) for f, n in _functions(ast.parse(text)) if n > limit}
        assert {f for f, _ in many} <= KEYWORD_INTERFACES.get(name, set()), (name, many)


@pytest.mark.parametrize("end", [") -> tuple[int, int]:", "):"])
def test_a_long_signature_is_found_in_the_text(end: str) -> None:
    long = ",\n".join(f"    p{i}: Callable[[int], float] = f(1)" for i in range(LIMIT + 1))
    text = f"def short(a: int) -> None:\n    return\n\n\nasync def long(\n{long}\n{end}\n    pass\n"
    assert [listed.count(",") >= LIMIT for listed in SIGNATURE.findall(text)] == [False, True]
