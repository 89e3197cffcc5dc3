"""Write the methods of dataclasses when they are first called, and parse types that are given as text when they are first used.

A command imports some 300 dataclasses and makes instances of a few. `dataclasses` compiles five methods for each of them, which
took a tenth of a small run; `typing` compiles each type of a field that is text, as those of pydantic's 80 kinds of schemas are.
Only classes of this package and of three libraries are treated so, and only where Python has what is replaced here; elsewhere
nothing changes.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable
from typing import Any

EXPECTED = ["name", "args", "body", "globals", "locals", "return_type"]
"""The parameters of the function that writes a method, in Python 3.11 and 3.12."""
PACKAGES = ("crowdveil", "annotated_types", "pydantic", "pyproj")
PARSED = "__forward_code__"
REFERENCE = {
    "__forward_arg__", PARSED, "__forward_evaluated__", "__forward_value__", "__forward_is_argument__",
    "__forward_is_class__", "__forward_module__",
}  # fmt: skip
"""What a type that is text has, in Python 3.11 to 3.13."""


def write_methods_later() -> None:
    """Have methods of dataclasses written at their first call, in this process."""
    write: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
    if write is None or list(inspect.signature(write).parameters) != EXPECTED:
        return

    def write_later(name: str, args: Any, body: Any, **given: Any) -> Any:
        module = str((given.get("globals") or {}).get("__name__"))
        if module.partition(".")[0] not in PACKAGES:
            return write(name, args, body, **given)
        return _later(name, lambda: write(name, args, body, **given))

    dataclasses._create_fn = write_later  # type: ignore[attr-defined]


def _later(name: str, write: Callable[[], Any]) -> Any:
    written: list[Any] = []

    def method(self: Any, *values: Any, **named: Any) -> Any:
        if not written:
            written.append(write())
            written[0].__qualname__ = method.__qualname__
        for cls in type(self).__mro__:
            if cls.__dict__.get(name) is method:
                setattr(cls, name, written[0])
        return written[0](self, *values, **named)

    method.__name__ = name
    return method


def parse_types_later() -> None:
    """Have types that are given as text parsed when they are first evaluated, in this process."""
    kind: Any = typing.ForwardRef
    if set(getattr(kind, "__slots__", ())) != REFERENCE or "__getattr__" in vars(kind):
        return
    at_once = kind.__init__
    parsed: dict[str, Any] = {}  # pydantic evaluates those of a base class again for each class made from it

    def begin(self: Any, arg: Any, is_argument: bool = True, module: Any = None, *, is_class: bool = False) -> None:
        if not isinstance(arg, str):
            at_once(self, arg)  # which raises
        self.__forward_arg__, self.__forward_module__ = arg, module
        self.__forward_evaluated__, self.__forward_value__ = False, None
        self.__forward_is_argument__, self.__forward_is_class__ = is_argument, is_class

    def parse(self: Any, name: str) -> Any:
        if name != PARSED:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}", name=name, obj=self)
        text = self.__forward_arg__
        if text not in parsed:
            whole = kind.__new__(kind)
            at_once(whole, text)
            parsed[text] = whole.__forward_code__
        self.__forward_code__ = parsed[text]
        return parsed[text]

    kind.__init__, kind.__getattr__ = begin, parse
