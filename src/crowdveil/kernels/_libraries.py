"""The code of kernels on its way to the processor: which of it LLVM optimizes, how far, and how often.

What kernels consist of is optimized once, where all parts of one that Python calls are together. Numba's own compiler does it in
each kernel again, for all that it calls.
"""

from __future__ import annotations

from typing import Any

from numba.core.codegen import JITCodeLibrary

_WRAPPER = "_ZN7cpython"
"""How names of functions begin that take Python's arguments and call a kernel with them."""


class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel that Python calls."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add instructions. What takes Python's arguments runs once for each call, and is left as it was written."""
        for function in ir_module.functions:
            if function.name.startswith(_WRAPPER) and not function.is_declaration:
                function.attributes.add("noinline")
                function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        """Remove what is plainly not needed; all else is for where everything is together, and would be done twice."""
        try:
            passes, builder = self._codegen._function_pass_manager(opt=1)
        except TypeError:  # numba before 0.62
            super()._optimize_functions(ll_module)
            return
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class InnerLibrary(KernelLibrary):
    """The code of a kernel that becomes part of others: no machine code is made of it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    serialize_using_object_code = JITCodeLibrary.serialize_using_bitcode
