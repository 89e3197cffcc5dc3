"""Lanes: four whole numbers side by side, which a processor adds and compares by one instruction or two.

Compilers find such loops by themselves where they are simple; one that runs through lists of lists is not. Nothing here imports
numba: kernels with lanes are on the disk as others are.
"""

from __future__ import annotations

from typing import Any

from crowdveil.kernels._jit import Intrinsic

LANES = 4
"""How many numbers there are in all lanes."""


@Intrinsic
def lanes_at(typing_context: Any, array: Any, at: Any) -> Any:
    """Return the numbers of an array from a place on."""
    from numba.core import types

    from crowdveil.kernels._lane_type import Lanes

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = builder.load(_place(context, builder, signature, arguments))
        lanes.align = 8  # as a number alone is, not as a vector may be
        return lanes

    return Lanes()(array, types.int64), generate


@Intrinsic
def put_lanes(typing_context: Any, array: Any, at: Any, lanes: Any) -> Any:
    """Write lanes into an array, from a place on."""
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _place(context, builder, signature, arguments)).align = 8
        return context.get_dummy_value()

    return types.void(array, types.int64, lanes), generate


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write instructions for the address of lanes in an array: the first two arguments are the array and the place."""
    from numba.core import cgutils

    from crowdveil.kernels._lane_type import VECTOR

    data = cgutils.create_struct_proxy(signature.args[0])(context, builder, arguments[0]).data
    return builder.bitcast(builder.gep(data, [arguments[1]]), VECTOR.as_pointer())


@Intrinsic
def fill_lanes(typing_context: Any, number: Any) -> Any:
    """Return a number in every lane."""
    from numba.core import types

    from crowdveil.kernels._lane_type import Lanes, filled

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return filled(builder, arguments[0])

    return Lanes()(types.int64), generate


@Intrinsic
def add_lanes(typing_context: Any, one: Any, other: Any) -> Any:
    """Return the sum in each lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return one(one, other), generate


@Intrinsic
def least_lanes(typing_context: Any, one: Any, other: Any) -> Any:
    """Return the lesser number in each lane."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(builder.icmp_signed("<", *arguments), *arguments)

    return one(one, other), generate


@Intrinsic
def mask_lanes(typing_context: Any, lanes: Any, mask: Any) -> Any:
    """Return the bits of each lane that are set in a mask."""
    from numba.core import types

    from crowdveil.kernels._lane_type import filled

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.and_(arguments[0], filled(builder, arguments[1]))

    return lanes(lanes, types.int64), generate


@Intrinsic
def multiply_lanes(typing_context: Any, lanes: Any, factor: Any, left: Any) -> Any:
    """Return each lane times a factor, moved to the left by so many bits; the factor and all lanes are below 2³².

    Processors have an instruction for such products where they have none for those of 64 bits.
    """
    from llvmlite import ir
    from numba.core import types

    from crowdveil.kernels._lane_type import VECTOR, WORD, filled

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        half = 2**32 - 1
        low = builder.and_(arguments[0], ir.Constant(VECTOR, [half] * LANES))
        product = builder.mul(low, filled(builder, builder.and_(arguments[1], WORD(half))))
        return builder.shl(product, filled(builder, arguments[2]))

    return lanes(lanes, types.int64, types.int64), generate
