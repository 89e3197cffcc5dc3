"""The type of lanes for numba; see `_lanes`. Imported where a kernel with lanes is compiled, or numba's own files name them."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import PrimitiveModel
from numba.extending import register_model

from crowdveil.kernels._lanes import LANES

WORD = ir.IntType(64)
VECTOR = ir.VectorType(WORD, LANES)


class Lanes(types.Type):
    """Whole numbers of 64 bits side by side."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes({LANES})")


@register_model(Lanes)
class LanesModel(PrimitiveModel):  # type: ignore[misc]
    """Lanes are a vector of LLVM, in memory as in registers."""

    def __init__(self, manager: object, kind: Lanes) -> None:
        super().__init__(manager, kind, VECTOR)


def filled(builder: ir.IRBuilder, word: ir.Value) -> ir.Value:
    """Write instructions that put a word into every lane."""
    position, undefined = ir.IntType(32), ir.Constant(VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, word, position(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(position, LANES), [0] * LANES))
