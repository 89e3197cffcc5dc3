"""Calls that kernels are full of, as instructions: allocations, filled or not, `min`, `max` and `int`.

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
from numba.core.types import unliteral  # type: ignore[attr-defined]
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.cpython.builtins import do_minmax
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl, _parse_empty_args, store_item


def _allocated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Allocate an array of a type that is returned; the shape is the first argument."""
    kind, sizes = _parse_empty_args(context, builder, signature, arguments)
    return _empty_nd_impl(context, builder, kind, sizes)


def _emptied(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return _allocated(context, builder, signature, arguments)._getvalue()


def _zeroed(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = _allocated(context, builder, signature, arguments)
    cgutils.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _filled(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Allocate an array with the second argument in every place."""
    value = context.cast(builder, arguments[1], signature.args[1], signature.return_type.dtype)
    return _with_values(context, builder, signature, arguments, lambda place: value)


def _with_ones(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    one = context.get_constant(types.intp, 1)
    value = context.cast(builder, one, types.intp, signature.return_type.dtype)
    return _with_values(context, builder, signature, arguments, lambda place: value)


def _counted(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    size = context.cast(builder, arguments[0], signature.args[0], types.intp)
    size = do_minmax(context, builder, [types.intp] * 2, [size, context.get_constant(types.intp, 0)], operator.gt)
    signature = signature.return_type(types.intp)
    return _with_values(context, builder, signature, [size], lambda place: place)


def _with_values(context: Any, builder: Any, signature: Any, arguments: Any, value_at: Callable[[Any], Any]) -> Any:
    """Allocate an array with what a function gives for each place."""
    array = _allocated(context, builder, signature, arguments)
    with cgutils.for_range(builder, array.nitems) as loop:
        place = builder.gep(array.data, [loop.index])
        store_item(context, builder, signature.return_type, value_at(loop.index), place)
    return array._getvalue()


def _allocation(generate: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a function of a shape, and one of a shape and a type of numbers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def of_floats(typing_context: Any, shape: Any) -> Any:
        return types.Array(types.float64, parse_shape(shape), "C")(shape), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def of_type(typing_context: Any, shape: Any, dtype: Any) -> Any:
        return types.Array(parse_dtype(dtype), parse_shape(shape), "C")(shape, dtype), generate

    return of_floats, of_type


@intrinsic  # type: ignore[untyped-decorator]
def _full(typing_context: Any, shape: Any, value: Any) -> Any:
    return types.Array(unliteral(value), parse_shape(shape), "C")(shape, value), _filled


@intrinsic  # type: ignore[untyped-decorator]
def _full_of_type(typing_context: Any, shape: Any, value: Any, dtype: Any) -> Any:
    return types.Array(parse_dtype(dtype), parse_shape(shape), "C")(shape, value, dtype), _filled


@intrinsic  # type: ignore[untyped-decorator]
def _range(typing_context: Any, size: Any) -> Any:
    return (types.Array(types.intp, 1, "C")(size), _counted) if isinstance(size, types.Integer) else None


def _extreme(compare: Callable[[Any, Any], bool]) -> tuple[Any, Any]:
    """Return a function of two numbers, and one of three."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return do_minmax(context, builder, list(signature.args), list(arguments), compare)

    @intrinsic  # type: ignore[untyped-decorator]
    def of_two(typing_context: Any, first: Any, second: Any) -> Any:
        return typing_context.unify_types(first, second)(first, second), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def of_three(typing_context: Any, first: Any, second: Any, third: Any) -> Any:
        return typing_context.unify_types(first, second, third)(first, second, third), generate

    return of_two, of_three


@intrinsic  # type: ignore[untyped-decorator]
def _whole(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], signature.return_type)

    return (number if isinstance(number, types.Integer) else types.intp)(number), generate


_empty, _zeros, _ones = _allocation(_emptied), _allocation(_zeroed), _allocation(_with_ones)
_max, _min = _extreme(operator.gt), _extreme(operator.lt)
_DIRECT: dict[tuple[Any, int], Any] = {
    (np.empty, 1): _empty[0],
    (np.empty, 2): _empty[1],
    (np.zeros, 1): _zeros[0],
    (np.zeros, 2): _zeros[1],
    (np.ones, 1): _ones[0],
    (np.ones, 2): _ones[1],
    (np.full, 2): _full,
    (np.full, 3): _full_of_type,
    (np.arange, 1): _range,
    (max, 2): _max[0],
    (max, 3): _max[1],
    (min, 2): _min[0],
    (min, 3): _min[1],
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
