"""Read the strings below the fields of a class, which document parameters: from the source, when a help or a page shows them."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise


@cache
def attribute_docs(cls: type) -> dict[str, str]:
    """Return the string below each annotated name of a class and its bases, by name."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        docs |= _own_docs(base)
    return docs


def _own_docs(cls: type) -> dict[str, str]:
    node = _classes(cls.__module__).get(cls.__qualname__.replace("<locals>.", ""))
    if node is None:
        return {}
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(node.body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the classes of a module by the names of what they are in; none of a module without a source."""
    if module == "builtins" or module.startswith("pydantic"):
        return {}
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, ast.ClassDef] = {}
    _collect(tree, "", found)
    return found


def _collect(node: ast.AST, path: str, found: dict[str, ast.ClassDef]) -> None:
    for inner in ast.iter_child_nodes(node):
        name = path
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{path}.{inner.name}" if path else inner.name
        if isinstance(inner, ast.ClassDef):
            found[name] = inner
        if isinstance(inner, ast.stmt):
            _collect(inner, name, found)
