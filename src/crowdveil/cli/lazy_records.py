"""Write the methods of our dataclasses when they are first called.

A command imports some 140 dataclasses and makes instances of a few. `dataclasses` compiles five methods for each of them, which
took a tenth of a small run. Only classes of this package are treated so, and only where Python has the function that is replaced
here; elsewhere nothing changes.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

EXPECTED = ["name", "args", "body", "globals", "locals", "return_type"]
"""The parameters of the function that writes a method, in Python 3.11 and 3.12."""


def write_methods_later() -> None:
    """Have methods of our dataclasses written at their first call, in this process."""
    write: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
    if write is None or list(inspect.signature(write).parameters) != EXPECTED:
        return

    def write_later(name: str, args: Any, body: Any, **given: Any) -> Any:
        module = str((given.get("globals") or {}).get("__name__"))
        if not module.startswith("crowdveil."):
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
