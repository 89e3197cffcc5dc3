"""Describe a parameter model as rows: the source of the command line, the docs and the web form."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from crowdveil.attribute_docs import attribute_docs
from crowdveil.extensions import OpenNames
from crowdveil.params import Params, read_share, read_share_of_trajectories

Kind = Literal["int", "float", "bool", "text", "choice", "share"]
_KINDS: dict[Any, Kind] = {int: "int", float: "float", bool: "bool"}
_UNITS = {"_m": "meters", "_s": "seconds", "_km2": "square kilometers", "_kmh": "km/h"}


@dataclass(frozen=True)
class Row:
    """One parameter.

    Attributes
    ----------
    name
        Its name in Python and in run files.
    kind
        "int", "float", "bool", "text", "choice" or "share" (a number below 1, or percents such as 10%).
    default
        Its default, None where there is none to show.
    required
        Whether it has no default.
    choices
        The values of a choice.
    more
        Whether it accepts other forms too, such as 10% or names in other tools.
    bounds
        The allowed range in words, such as "at least 2".
    unit
        Its unit, from the name's suffix.
    model
        The model that it is a parameter of.
    metavar
        The placeholder of its value on the command line, such as FILE; "" for the one of its kind.
    """

    name: str
    kind: Kind
    default: Any
    required: bool
    choices: tuple[str, ...]
    more: bool
    bounds: str
    unit: str
    model: type[Params]
    metavar: str = ""

    @property
    def option(self) -> str:
        """Return its name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def help(self) -> str:
        """Return its meaning, from the string below its declaration; the source is parsed when it is asked for."""
        given = self.model.model_fields[self.name].description
        return " ".join((given or attribute_docs(self.model).get(self.name, "")).split())


def rows(params: type[Params]) -> list[Row]:
    """Return the parameters of a model, in the order of declaration."""
    return [_row(params, name, info) for name, info in params.model_fields.items()]


def _row(model: type[Params], name: str, info: FieldInfo) -> Row:
    kind, choices = _kind(info.annotation)
    named = next((m for m in info.metadata if isinstance(m, OpenNames)), None)
    if named is not None:
        kind, choices = "choice", named.all
    more = named is not None or any(isinstance(m, BeforeValidator) for m in info.metadata)
    if more and kind != "choice":
        share = any(getattr(m, "func", None) in (read_share, read_share_of_trajectories) for m in info.metadata)
        kind = "share" if share else "text"  # it takes forms of its own, such as 10%
    return Row(
        name=name,
        kind=kind,
        default=None if info.is_required() else info.default,
        required=info.is_required(),
        choices=choices,
        more=more,
        bounds=_bounds(info),
        unit=next((unit for suffix, unit in _UNITS.items() if name.endswith(suffix)), ""),
        model=model,
        metavar=str(extra.get("metavar", "")) if isinstance(extra := info.json_schema_extra, dict) else "",
    )


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [a for a in get_args(annotation) if a is not type(None)]
        return _kind(inner[0]) if len(inner) == 1 else ("text", ())
    if get_origin(annotation) is Literal:
        return "choice", tuple(str(a) for a in get_args(annotation))
    return _KINDS.get(annotation, "text"), ()


def _bounds(info: FieldInfo) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    parts = []
    for constraint in info.metadata:
        for sign, text in words.items():
            bound = getattr(constraint, sign, None)
            if bound is not None:
                parts.append(f"{text} {bound:,}")
    return ", ".join(parts)
