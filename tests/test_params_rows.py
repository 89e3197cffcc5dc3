from __future__ import annotations

from typing import Literal

from pydantic import Field

from crowdveil.params import Budget, Params, TrajectoryDistance, rows
from crowdveil.solve.trajectory.distances import DISTANCES


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


class Others(Params):
    """Parameters that take more than they show."""

    distance: TrajectoryDistance = "dtw"
    """How far."""
    budget: Budget = 0.1
    """How much."""


def test_rows_say_what_was_declared() -> None:
    k, radius, mode, link, name = rows(Example)
    assert (k.name, k.option, k.kind, k.default, k.bounds) == ("k", "--k", "int", 3, "at least 2, at most 1,000")
    assert (radius.option, radius.kind, radius.unit, radius.bounds) == ("--radius-m", "float", "meters", "above 0")
    assert (mode.kind, mode.choices) == ("choice", ("all", "one"))
    assert link.kind == "bool" and link.default is False
    assert name.required and name.kind == "text" and name.help == "What."
    assert not any(row.more for row in rows(Example))


def test_choices_stay_choices_where_names_elsewhere_are_taken() -> None:
    distance, budget = rows(Others)
    assert (distance.kind, distance.choices, distance.more) == ("choice", tuple(kind.name for kind in DISTANCES), True)
    assert (budget.kind, budget.choices) == ("share", ())
    for kind in DISTANCES:
        for name in (kind.name, *kind.aliases):
            assert Others.checked({"distance": name}).distance == kind.name


def test_help_is_the_string_below_a_field_of_the_class_or_its_bases() -> None:
    class Own(Example):
        """Declared inside of a function."""

        mode: Literal["all", "one"] = "one"
        """Which one,
        over two lines."""
        link: bool = True
        more: int = 0

    helps = {row.name: row.help for row in rows(Own)}
    assert helps == {
        "k": "Smallest crowd.", "radius_m": "How far.", "mode": "Which one, over two lines.", "link": "", "name": "What.",
        "more": "",
    }  # fmt: skip


def test_the_schema_for_other_programs_has_the_help() -> None:
    described = {name: entry.get("description") for name, entry in Example.model_json_schema()["properties"].items()}
    assert described == {row.name: row.help for row in rows(Example)}
