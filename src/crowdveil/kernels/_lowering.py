"""Instructions of LLVM for kernels: those of numba, less what the optimizer removes again.

Writing, printing and parsing instructions takes longer than optimizing them.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from functools import cache, cached_property
from typing import Any

from numba.core import cgutils, ir, types
from numba.core.lowering import Lower
from numba.np.arrayobj import fix_integer_index, load_item, store_item


class KernelLower(Lower):  # type: ignore[misc]
    """Numba's lowering, with short forms of what kernels consist of: numbers in variables, and in arrays of one dimension."""

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """Return an element of an array, or what else is indexed."""
        if not _is_element(*signature.args):
            return super().lower_getitem(resty, expr, value, index, signature)
        place = self._place(value, index, signature)
        found = load_item(self.context, self.builder, signature.args[0], place)
        return self.context.cast(self.builder, found, signature.return_type, resty)

    def lower_binop(self, resty: Any, expr: Any, op: Any) -> Any:
        """Return what an operator gives. One on numbers is looked up once, and not again for values that are known."""
        signature = self.fndesc.calltypes[expr]
        if op not in ARITHMETIC or not all(isinstance(kind, NUMBERS) for kind in signature.args):
            return super().lower_binop(resty, expr, op)
        left, right = (
            self._cast_var(var, kind) for var, kind in zip((expr.lhs, expr.rhs), signature.args, strict=True)
        )
        typing = self.context.typing_context
        function = typing.resolve_value_type(op)
        if (op, *signature.args) not in _operators:
            _operators[op, *signature.args] = function.get_call_type(typing, signature.args, {})
        implementation = self.context.get_function(function, _operators[op, *signature.args])
        found = implementation(self.builder, (left, right))
        return self.context.cast(self.builder, found, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Store an element of an array, or what else is indexed."""
        array, index, kind = signature.args
        if not _is_element(array, index) or not isinstance(kind, NUMBERS):
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self._cast_var(value_var, kind)
        value = self.context.cast(self.builder, value, kind, array.dtype)
        return store_item(self.context, self.builder, array, value, self._place(target_var, index_var, signature))

    def _place(self, array: Any, index: Any, signature: Any) -> Any:
        """Return a pointer to an element; negative indices count from the end, and none is checked."""
        array_type, index_type = signature.args[:2]
        struct, position = self.loadvar(array.name), self._cast_var(index, index_type)
        field = self.context.data_model_manager[array_type].get_field_position
        size = self.builder.extract_value(struct, [field("shape"), 0])
        position = fix_integer_index(self.context, self.builder, index_type, position, size)
        return self.builder.gep(self.builder.extract_value(struct, field("data")), [position])

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Store a value in a variable. A number that was there before need not be read."""
        kind = self.typeof(name)
        if name in self._borrowed:
            self.decref(kind, value)  # next to where it was counted: the optimizer removes both
        owned = self._is_counted(kind) and name not in self._borrowed
        if argidx is None and name not in self._singly_assigned_vars and not owned:
            self._alloca_var(name, kind)
            self.builder.store(value, self.varmap[name])
        else:
            super().storevar(value, name, argidx)

    def delvar(self, name: str) -> None:
        """Delete a variable. A number need not be replaced by zero."""
        known = name in self.varmap or name in self._blk_local_varmap
        if name in self._borrowed:
            if not known:  # deleted where a loop begins, and assigned further down
                self._singly_assigned_vars.discard(name)
                self._alloca_var(name, self.typeof(name))
        elif not known or self._is_counted(self.typeof(name)):
            super().delvar(name)

    def _find_singly_assigned_variable(self) -> None:
        """Find variables that need no place in memory: of one block, as numba does; and numbers and lent arrays of several, if
        one of these comes before all others.
        """
        if self.func_ir.is_generator:
            super()._find_singly_assigned_variable()
            return
        lifetime = self.func_ir.variable_lifetime
        before, used = lifetime.cfg.dominators(), defaultdict(list)
        for label, names in lifetime.usedefs.usemap.items():
            for name in names:
                used[name].append(label)
        found = set()
        for name, given in self._assigned.items():
            first = given[0][0]
            lasting = name in self._borrowed or not self._is_counted(self.typeof(name))
            # Instructions are written in the order of labels.
            if len(given) == 1 and all(lasting and label > first and first in before[label] for label in used[name]):
                found.add(name)
        self._singly_assigned_vars = found
        self._blk_local_varmap: dict[str, Any] = {}

    @cached_property
    def _assigned(self) -> dict[str, list[tuple[int, Any]]]:
        """What variables are assigned, each with the label of the block."""
        found = defaultdict(list)
        for label, block in self.blocks.items():
            for assignment in block.find_insts(ir.Assign):
                found[assignment.target.name].append((label, assignment.value))
        return found

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Return a place for a variable, of which no debugger is told."""
        return cgutils.alloca_once(self.builder, lltype, name=name, zfill=False)

    @cached_property
    def _borrowed(self) -> frozenset[str]:
        """Variables that are arguments or arrays of structures among them: the caller holds these to the end of the call.

        A reference of their own would be counted at every call, by atomic instructions, which are slow.
        """
        once = {name: given[0][1] for name, given in self._assigned.items() if len(given) == 1}
        found: set[str] = set()
        while more := {name for name, value in once.items() if name not in found and self._is_lent(name, value, found)}:
            found |= more
        return frozenset(found)

    def _is_lent(self, name: str, value: Any, lent: set[str]) -> bool:
        """Return whether a value is an argument or part of one, from the variables that are."""
        if not isinstance(self.typeof(name), (types.Array, STRUCTURE)):
            return False
        if isinstance(value, ir.Arg):
            return bool(self.typeof("arg." + value.name) == self.typeof(name))
        if isinstance(value, ir.Var):
            return value.name in lent and self.typeof(value.name) == self.typeof(name)
        part = isinstance(value, ir.Expr) and value.op in ("getattr", "static_getitem", "exhaust_iter")
        return part and value.value.name in lent and isinstance(self.typeof(value.value.name), STRUCTURE)

    def incref(self, typ: Any, val: Any) -> None:
        """Count one more reference to an array."""
        if self._is_counted(typ) and not self._call_for_arrays("NRT_incref", typ, val):
            super().incref(typ, val)

    def decref(self, typ: Any, val: Any) -> None:
        """Count one reference to an array less."""
        if self._is_counted(typ) and not self._call_for_arrays("NRT_decref", typ, val):
            super().decref(typ, val)

    def _call_for_arrays(self, name: str, kind: Any, value: Any) -> bool:
        """Call a function of numba's runtime for all arrays of a value; return whether that was possible.

        It is not before numba itself has declared the function, nor for values of other types.
        """
        function, places = self.module.globals.get(name), _arrays_of(kind)
        if function is None or places is None or len(function.args) != 1:
            return False
        for place in places:
            field = self.context.data_model_manager[place[-1]].get_field_position("meminfo")
            self.builder.call(function, [self.builder.extract_value(value, [*place[:-1], field])])
        return True

    def _is_counted(self, kind: Any) -> bool:
        """Return whether references to values of a type are counted: to arrays, and structures of them."""
        return not isinstance(kind, NUMBERS)


@cache
def _arrays_of(kind: Any) -> list[tuple[Any, ...]] | None:
    """Return where a structure has arrays, positions and then the type of each; None if it holds more than these and numbers."""
    if isinstance(kind, NUMBERS):
        return []
    if isinstance(kind, types.Array):
        return [(kind,)]
    if not isinstance(kind, STRUCTURE):
        return None
    found: list[tuple[Any, ...]] = []
    for position, part in enumerate(kind):
        places = _arrays_of(part)
        if places is None:
            return None
        found += [(position, *place) for place in places]
    return found


NUMBERS = types.Integer, types.Float, types.Boolean
ARITHMETIC = frozenset(
    (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod,
        operator.iadd, operator.isub, operator.imul, operator.lshift, operator.rshift, operator.and_, operator.or_,
        operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, bool,
    )
)  # fmt: skip
_operators: dict[tuple[Any, ...], Any] = {}
"""Signatures of operators, by the types of their arguments."""
STRUCTURE = types.BaseTuple  # type: ignore[attr-defined]


def _is_element(array: Any, index: Any) -> bool:
    """Return whether an index of an array is a number, and what is there, too."""
    plain = (
        isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and isinstance(array.dtype, NUMBERS)
    )
    return plain and isinstance(index, types.Integer)
