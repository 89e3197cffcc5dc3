"""Numba's compiler as kernels need it: code that does the same, in less time.

A kernel that others call is part of their code, so no machine code of its own is made where it is compiled for them. Passes that
would change nothing are left out, and an operator is looked up once for the same types. All else is numba's: `_lowering`,
`_direct_calls` and `_libraries` say what is done in another way.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from numba import _dynfunc
from numba.core import ir, types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.environment import lookup_environment
from numba.core.typed_passes import NativeLowering, NopythonRewrites, NopythonTypeInference
from numba.core.types import unliteral  # type: ignore[attr-defined]
from numba.core.untyped_passes import InlineClosureLikes, IRProcessing

from crowdveil.kernels._direct_calls import DirectCalls
from crowdveil.kernels._libraries import InnerLibrary, KernelLibrary
from crowdveil.kernels._lowering import ARITHMETIC, NUMBERS, KernelLower
from crowdveil.kernels._shortcuts import no_block_entries, no_linear_algebra, unreported_locks

_ENVIRONMENT = "_ZN08NumbaEnv"
"""How names of numba's environments begin: what code takes from Python."""


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(NativeLowering):  # type: ignore[misc]
    _name = "crowdveil_lowering"

    @property
    def lowering_class(self) -> Any:
        """Return the class that writes instructions."""
        return KernelLower

    def run_pass(self, state: Any) -> bool:
        """Write and optimize the code of a kernel, and make it ready to be called from Python or to be part of others."""
        inner = state.flags.no_cpython_wrapper
        library = (InnerLibrary if inner else KernelLibrary)(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.library = library
        state.flags.no_compile = inner
        super().run_pass(state)
        if inner:
            self._register(state)
        else:
            # Those of inner kernels have an address only now.
            for name in (variable.name for variable in library._final_module.global_variables):
                environment = lookup_environment(name) if name.startswith(_ENVIRONMENT) else None
                if environment is not None:
                    library.codegen.set_env(name, environment)
        return True

    def _register(self, state: Any) -> None:
        """Have other kernels find one that has no machine code; numba knows it by a function, which nobody can call."""
        made, code = state["cr"], state.func_id.code
        known = _dynfunc.make_function(
            made.fndesc.lookup_module(), code.co_name, "", 0, made.env, (state.library,)
        )  # 0: no address
        state.targetctx.insert_user_function(known, made.fndesc, [state.library])
        state.reload_init.extend(getattr(state.library, "_reload_init", ()))  # since numba 0.62
        state["cr"] = made._replace(cfunc=known)


_signatures: dict[tuple[Any, ...], Any] = {}
"""Operators on numbers and elements of arrays, by their types, whatever the values of literals: numba tries dozens of functions
for each use."""


def _is_kernel(function: Any) -> bool:
    """Return whether a function is a kernel of ours."""
    return isinstance(function, types.Dispatcher) and function.dispatcher._compiler.pipeline_class is KernelCompiler


def _is_plain(function: Any, kinds: tuple[Any, ...]) -> bool:
    """Return whether a function is an operator on numbers, or gives an element of an array."""
    if function is operator.getitem:
        return isinstance(kinds[0], types.Array) and isinstance(kinds[1], types.Integer)
    return function in ARITHMETIC and all(isinstance(kind, NUMBERS) for kind in kinds)


@contextmanager
def _remembered_operators(context: Any) -> Iterator[None]:
    """Have numba look up each operator on numbers once, and compile no kernel for the value of an argument.

    Numba would compile a kernel that is called with 0 once more for that 0, which the optimizer sees anyhow. Only one thread
    compiles at a time.
    """
    resolve = context.resolve_function_type

    def remembered(function: Any, arguments: tuple[Any, ...], named: Any) -> Any:
        kinds = tuple(unliteral(kind) for kind in arguments)
        if _is_kernel(function):
            return resolve(function, kinds, {name: unliteral(kind) for name, kind in named.items()})
        if named or not _is_plain(getattr(function, "typing_key", function), kinds):
            return resolve(function, arguments, named)
        if (function, *kinds) not in _signatures:
            _signatures[function, *kinds] = resolve(function, kinds, named)
        return _signatures[function, *kinds]

    if "resolve_function_type" in vars(context):  # a kernel is compiled for another one
        yield
        return
    context.resolve_function_type = remembered
    try:
        yield
    finally:
        del context.resolve_function_type


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inference(NopythonTypeInference):  # type: ignore[misc]
    _name = "crowdveil_inference"

    def run_pass(self, state: Any) -> Any:
        """Find the types of all variables."""
        with _remembered_operators(state.typingctx):
            return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Closures(InlineClosureLikes):  # type: ignore[misc]
    _name = "crowdveil_closures"

    def run_pass(self, state: Any) -> Any:
        """Inline functions inside functions, and comprehensions, where there are any."""
        inside = any(isinstance(constant, CodeType) for constant in state.func_id.code.co_consts)
        return super().run_pass(state) if inside else False


@register_pass(mutates_CFG=True, analysis_only=False)
class _ArrayExpressions(NopythonRewrites):  # type: ignore[misc]
    _name = "crowdveil_array_expressions"

    def run_pass(self, state: Any) -> Any:
        """Fuse operations on whole arrays, where there are any."""
        computed = (
            signature.return_type
            for expression, signature in state.calltypes.items()
            if isinstance(expression, ir.Expr) and "getitem" not in expression.op and signature is not None
        )
        return super().run_pass(state) if any(isinstance(kind, types.Array) for kind in computed) else False


_PASSES = {
    InlineClosureLikes: _Closures,
    NopythonTypeInference: _Inference,
    NopythonRewrites: _ArrayExpressions,
    NativeLowering: _Lowering,
}


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's compiler with the passes above."""

    def __init__(self, *given: Any) -> None:
        with no_linear_algebra():
            super().__init__(*given)

    def define_pipelines(self) -> list[Any]:
        """Return numba's list of passes, with ours in their places."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(DirectCalls, IRProcessing)
        manager.passes = [(_PASSES.get(found, found), name) for found, name in manager.passes]
        manager.finalize()
        return [manager]

    def compile_extra(self, func: Any) -> Any:
        """Compile a function. Nothing that is made on the way is worth looking through for what can be freed."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            with unreported_locks(), no_block_entries():
                return super().compile_extra(func)
        finally:
            if collecting:
                gc.enable()
