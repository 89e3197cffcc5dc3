"""Exact comparisons of q·A + p·S in 128 bits: costs of large maps times volumes of large matrices do not fit into 64."""

from __future__ import annotations

from typing import Any

from crowdveil.kernels._jit import Intrinsic, kernel


@Intrinsic
def _sign_of_sum(typing_context: Any, p: Any, s: Any, q: Any, a: Any) -> Any:
    """Return the sign of p·s + q·a; a processor multiplies two words of 64 bits into two words by one instruction."""
    from llvmlite import ir
    from numba.core import types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        p, s, q, a = (builder.sext(argument, wide) for argument in arguments)
        total = builder.add(builder.mul(p, s), builder.mul(q, a))
        above = builder.zext(builder.icmp_signed(">", total, wide(0)), word)
        below = builder.zext(builder.icmp_signed("<", total, wide(0)), word)
        return builder.sub(above, below)

    return types.int64(types.int64, types.int64, types.int64, types.int64), generate


@kernel
def sign_at(p: int, q: int, a: int, s: int) -> int:
    """Return the sign of q·a + p·s, that of a difference of costs `a` and of suppressed volumes `s` at the multiplier p/q.

    All four are numbers of 64 bits with a sign; the result is exact for any of them except four times −2⁶³.
    """
    sign: int = _sign_of_sum(p, s, q, a)
    return sign


@kernel
def is_below(p: int, q: int, other_p: int, other_q: int) -> bool:
    """Return whether the multiplier p/q is below the other; a denominator of 0 is an infinite one."""
    return sign_at(other_q, other_p, -q, p) < 0
