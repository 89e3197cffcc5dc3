"""What needs numba: compiling kernels, numba's own files of them, and the types that they are compiled for.

Imported only where a kernel is not on the disk, or was called with arguments that `_stored` does not keep.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba import types
from numba.core.caching import IndexDataCacheFile, NullCache
from numba.core.intrinsics import INTR_MATH
from numba.core.typing.templates import builtin_registry
from numba.extending import intrinsic, overload, typeof_impl

from crowdveil.compilation import report_compilation
from crowdveil.kernels import _stored


def dispatcher_of(kernel: Any, *, inner: bool) -> Any:
    """Return numba's object of a kernel, which compiles it, or loads it from numba's own files.

    An inner one is for kernels that call it: it cannot be called from Python, and takes less time to compile.
    """
    # No kernel is passed to another one as a value, which is what the second kind of wrapper is for.
    options = {"cache": True, "nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner, **kernel.options}
    compiled: Any = numba.njit(**_pipeline(), **options)(kernel.py_func)
    _note_sources(compiled, kernel.stamp, inner=inner)
    _save_if_allowed(compiled, kernel, inner=inner)
    _report_if_missing(compiled._cache)
    return compiled


TRIED = (0, 61), (0, 68)
"""The first and the last version of numba whose parts the compiler of kernels is made of. Others compile by themselves, which
takes longer and gives the same: a part that works in another way could give other code."""


@cache
def _pipeline() -> dict[str, Any]:
    """Return the compiler of kernels; numba's own if this numba is not among those tried, or has other parts.

    Numba's own is also the one that checks indices, where that is asked for (NUMBA_BOUNDSCHECK).
    """
    first, last = TRIED
    if numba.config.BOUNDSCHECK or not first <= numba.version_info.short <= last:
        return {}
    try:
        from crowdveil.kernels._pipeline import KernelCompiler
    except ImportError:
        return {}
    return {"pipeline_class": KernelCompiler}


def register(kernel_class: type, intrinsic_class: type) -> None:
    """Have numba take our kernels and intrinsics for its own where a kernel names them."""

    @typeof_impl.register(kernel_class)  # type: ignore[untyped-decorator]
    def _kernel_type(value: Any, context: Any) -> Any:
        return types.Dispatcher(value.linked)

    @typeof_impl.register(intrinsic_class)  # type: ignore[untyped-decorator]
    def _intrinsic_type(value: Any, context: Any) -> Any:
        made = value.made(intrinsic)
        return next(kind for known, kind in reversed(builtin_registry.globals) if known is made)


def add_overload(function: Callable[..., Any], implementation: Callable[..., Any]) -> None:
    """Have kernels call an implementation where they name a function of Python."""
    overload(function, jit_options={"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_pipeline()})(
        implementation
    )


def description(kind: Any) -> Any:
    """Return a type as JSON can hold it, None if it is of a kind that is not compiled ahead."""
    if isinstance(kind, types.Array) and _stored.SCALAR.fullmatch(str(kind.dtype)):
        return [str(kind.dtype), kind.ndim, kind.layout, kind.mutable, kind.aligned]
    if isinstance(kind, types.BaseNamedTuple):
        fields = [description(field) for field in kind]
        name = f"{kind.instance_class.__module__}:{kind.instance_class.__name__}"
        return None if None in fields else {name: fields}
    return str(kind) if _stored.SCALAR.fullmatch(str(kind)) else None


def _note_sources(compiled: Any, stamp: list[str] | None, *, inner: bool) -> None:
    """Have a kernel compiled again when any of its files changed: numba looks at its own file only, and takes what it compiled
    before although a kernel that it calls is another one now.

    Inner ones have files of their own, since they would be taken for those that Python can call.
    """
    try:
        if stamp is None:
            raise OSError("sources that cannot be read")
        stored = compiled._cache
        stored._cache_file = IndexDataCacheFile(
            cache_path=stored.cache_path,
            filename_base=f"{stored._impl.filename_base}{'-inner' if inner else ''}",
            source_stamp=[str(_stored.FORMAT), *stamp],
        )
    except (AttributeError, OSError, TypeError):
        compiled._cache = NullCache()  # a numba that keeps its notes elsewhere, or no sources: slow, but right


def _save_if_allowed(compiled: Any, kernel: Any, *, inner: bool) -> None:
    """Keep a kernel for numba and for `_stored`; let one that cannot be kept be compiled and used all the same."""
    stored = compiled._cache
    save = stored.save_overload

    def save_or_not(signature: Any, result: Any) -> None:
        with suppress(OSError):
            save(signature, result._replace(type_annotation=""))  # text that nobody reads, and that takes long to write
        with suppress(*_stored.UNSUITED):
            if not inner and stored.cache_path is not None:
                _save_code(Path(stored.cache_path), signature, result, kernel)

    stored.save_overload = save_or_not


def _save_code(folder: Path, signature: Any, result: Any, kernel: Any) -> None:
    """Keep machine code so that it runs without numba, if it needs nothing that is not there then."""
    kinds = [description(kind) for kind in getattr(signature, "args", signature)]
    if None in kinds or result.reload_init or result.lifted or result.objectmode:
        return
    environments = {result.environment.env_name: result.environment}
    environments |= {found.env_name: found for found in result._find_referenced_environments()}
    constants = {name: found.consts for name, found in environments.items()}
    if all(_is_dtype(constant) for found in constants.values() for constant in found) and _all_known(result.library):
        _, _, (object_code, _) = result.library.serialize_using_object_code()
        named = {name: [str(constant.str) for constant in found] for name, found in constants.items()}
        entry = result.fndesc.llvm_cpython_wrapper_name
        code = _stored.Code(object_code, entry, named, sorted(INTR_MATH))
        _stored.save(folder / _stored.file_name(kernel.py_func, kinds), code, kernel.stamp)


def _is_dtype(constant: Any) -> bool:
    return hasattr(constant, "str") and hasattr(constant, "isnative") and constant.names is None


def _all_known(library: Any) -> bool:
    """Return whether code names nothing that is missing where numba is: LLVM would end the process there."""
    module, known = library._final_module, _stored.known_symbols()
    named = {g.name for part in (module.functions, module.global_variables) for g in part if g.is_declaration}
    others = {name for name in named if not name.startswith("llvm.")} - known - set(INTR_MATH)
    return not any(_is_numbas(name) for name in others)


def _is_numbas(name: str) -> bool:
    """Return whether a name is not one of the process itself, such as those of Python and of the C library."""
    import ctypes

    return name.startswith(("numba_", "NRT_", "_ZN")) or not hasattr(ctypes.pythonapi, name)


def _report_if_missing(stored: Any) -> None:
    """Report the compilation of a kernel that is not on the disk before it begins."""
    load = _load_only(stored)

    def load_or_report(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        if found is None:
            report_compilation()
        return found

    stored.load_overload = load_or_report


def _load_only(stored: Any) -> Callable[[Any, Any], Any]:
    """Return how a kernel is loaded from numba's file, without all that numba needs to compile one.

    Numba's own way first declares every function that kernels may call, which takes a quarter of a second. Machine code needs
    none of them, only the addresses of numba's runtime; a kernel that is then compiled has them declared by the compiler.
    """
    if not hasattr(stored, "_load_overload") or not hasattr(stored, "_guard_against_spurious_io_errors"):
        return stored.load_overload  # type: ignore[no-any-return]

    def load(signature: Any, context: Any) -> Any:
        with stored._guard_against_spurious_io_errors():
            return stored._load_overload(signature, context)

    return load


for extension in _stored.EXTENSIONS:
    # C modules that were there before numba are not yet attributes of their packages.
    package, _, last = f"numba.{extension}".rpartition(".")
    setattr(sys.modules[package], last, sys.modules[f"numba.{extension}"])
_stored.known_symbols()  # names numba's runtime and the flag of an interrupt to LLVM
