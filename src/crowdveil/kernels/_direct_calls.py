"""Calls that kernels are full of, as instructions: allocations, `min`, `max` and `int`.

Numba compiles a function for each of them, and for each kind of arguments once more; together they took a tenth of the time of
compiling. What the instructions compute is numba's own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import cgutils, ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_empty_args


def _allocation(*, zero: bool) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def allocation(typing_context: Any, shape: Any, dtype: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind, sizes = _parse_empty_args(context, builder, signature, arguments)
            array = _empty_nd_impl(context, builder, kind, sizes)
            if zero:
                cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
            return array._getvalue()

        return types.Array(parse_dtype(dtype), parse_shape(shape), "C")(shape, dtype), generate

    return allocation


def _extreme(compare: Callable[[Any, Any], bool]) -> Any:
    @intrinsic  # type: ignore[untyped-decorator]
    def extreme(typing_context: Any, first: Any, second: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return do_minmax(context, builder, list(signature.args), list(arguments), compare)

        return typing_context.unify_types(first, second)(first, second), generate

    return extreme


@intrinsic  # type: ignore[untyped-decorator]
def _whole(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return (number if isinstance(number, types.Integer) else types.intp)(number), generate


_DIRECT: dict[tuple[Any, int], Any] = {
    (np.empty, 2): _allocation(zero=False),
    (np.zeros, 2): _allocation(zero=True),
    (max, 2): _extreme(operator.gt),
    (min, 2): _extreme(operator.lt),
    (int, 1): _whole,
}
"""What stands in for functions with so many arguments, all of them given by position."""


@register_pass(mutates_CFG=False, analysis_only=False)
class DirectCalls(FunctionPass):  # type: ignore[misc]
    """The pass of numba's compiler that puts them in."""

    _name = "crowdveil_direct_calls"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Replace functions, each where it is looked up; that a call is alone in using it is how bytecode is made."""
        blocks = state.func_ir.blocks.values()
        named = _named(blocks)
        found = [call for block in blocks for call in block.find_exprs("call") if call.func.name in named]
        changed = False
        for call in found:
            assignment, function = named[call.func.name]
            direct = None if call.kws or call.vararg else _DIRECT.get((function, len(call.args)))
            if direct is not None:
                assignment.value = ir.Global(function.__name__, direct, assignment.loc)
                changed = True
        return changed


def _named(blocks: Any) -> dict[str, tuple[Any, Any]]:
    """Return the functions that variables stand for, of Python and of numpy, and where each is assigned."""
    modules: set[str] = set()
    found = {}
    for block in blocks:
        for assignment in block.find_insts(ir.Assign):
            name, value = assignment.target.name, assignment.value
            if isinstance(value, ir.Global) and value.value is np:
                modules.add(name)
            elif isinstance(value, ir.Global) and any(value.value is function for function in (max, min, int)):
                found[name] = assignment, value.value
            elif isinstance(value, ir.Expr) and value.op == "getattr" and value.value.name in modules:
                found[name] = assignment, getattr(np, value.attr, None)
    return found
