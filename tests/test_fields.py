from __future__ import annotations

from typing import Literal

from pydantic import Field

from crowdveil.fields import rows
from crowdveil.params import Params


class Example(Params):
    """An example."""

    k: int = Field(3, ge=2, le=1000)
    """Smallest crowd."""
    radius_m: float | None = Field(None, gt=0)
    """How far."""
    mode: Literal["all", "one"] = "all"
    """Which."""
    link: bool = False
    """Whether."""
    name: str
    """What."""


def test_rows_say_what_was_declared() -> None:
    k, radius, mode, link, name = rows(Example)
    assert (k.name, k.option, k.kind, k.default, k.bounds) == ("k", "--k", "int", 3, "at least 2, at most 1,000")
    assert (radius.option, radius.kind, radius.unit, radius.bounds) == ("--radius-m", "float", "metres", "above 0")
    assert (mode.kind, mode.choices) == ("choice", ("all", "one"))
    assert link.kind == "bool" and link.default is False
    assert name.required and name.kind == "text" and name.help == "What."
