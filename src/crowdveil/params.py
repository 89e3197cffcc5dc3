"""Define parameters: named, typed, bounded and documented once; and the types that several models share."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.config import JsonDict
from pydantic.fields import FieldInfo

from crowdveil.engine.extensions import OpenNames
from crowdveil.errors import Option, ParameterError, Text
from crowdveil.model.flows import trips_within
from crowdveil.model.time_axis import DAY_S, StepClass, step_seconds
from crowdveil.solve.od.region_space import RegionExtent
from crowdveil.solve.od.small_flows import Reporting
from crowdveil.solve.trajectory.distances import DISTANCES, DistanceName

DURATION: JsonDict = {"metavar": "DURATION"}
"""Shows a field of a length of time as `--option DURATION` on the command line."""
Column = Annotated[str | None, Field(json_schema_extra={"metavar": "COLUMN"})]
"""The name of a column."""


class Params(BaseModel):
    """Base of every parameter model: named, typed, bounded, documented by the string below each field."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True, defer_build=True,
        use_attribute_docstrings=True,
    )  # fmt: skip

    @classmethod
    def checked(cls, values: dict[str, Any]) -> Any:
        """Return parameters from plain values; raise `ParameterError` with the first problem."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise _error(error, list(cls.model_fields)) from None


def named_parameters(text: str, example: str) -> tuple[str, dict[str, str]]:
    """Return the name and the parameters in `name` or `name:parameter=value:…`; the error message quotes `example`."""
    name, *parts = [part.strip() for part in text.split(":")]
    values: dict[str, str] = {}
    for part in parts:
        key, equals, value = (x.strip() for x in part.partition("="))
        if not key or not equals or not value:
            raise ParameterError(text, f"Expected parameters as in {example}, got {part!r}.")
        values[key.replace("-", "_")] = value
    return name, values


class Described:
    """A registered record, described by the docstring of the module of its `run`."""

    run: Callable[..., Any]

    @property
    def doc(self) -> str:
        """Return the docstring of its module."""
        return sys.modules[self.run.__module__].__doc__ or ""

    @property
    def summary(self) -> str:
        """Return the first line of the docstring."""
        return self.doc.strip().splitlines()[0]


class FlowParams(Params):
    """Parameters of every method for flows."""

    k: int = Field(10, ge=2, title="Smallest group (k)")
    """Smallest group size of a published flow."""
    aggregate_small: bool = Field(False, title="Aggregate small flows")
    """Publish the suppressed destinations of an origin as one area if at least k people go there."""
    include_empty: bool = Field(True, title="Include tiles without trips")
    """Add tiles without trips to the areas of aggregated small flows. Otherwise each of their tiles is known to be visited."""

    @property
    def reporting(self) -> Reporting:
        """Return the handling of small flows."""
        return Reporting(self.aggregate_small, self.include_empty)


class SizedAreas(FlowParams):
    """The smallest number of tiles of a published area (l-diversity)."""

    min_tiles: int = Field(1, ge=1, title="Fewest tiles of an area")
    """Smallest number of tiles of a published area (l-diversity)."""

    @property
    def reporting(self) -> Reporting:
        """Return the handling of small flows."""
        return Reporting(self.aggregate_small, self.include_empty, self.extent)

    @property
    def extent(self) -> RegionExtent:
        """Return the limits of the size of published areas."""
        return RegionExtent(self.min_tiles)


def _split(value: Any) -> Any:
    """Return the parts of a text between commas; anything else unchanged."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _split_numbers(value: Any) -> Any:
    """Return one number as a list; of a text the parts between commas."""
    return [value] if isinstance(value, int) else _split(value)


TextList = Annotated[list[str] | None, BeforeValidator(_split)]
"""Texts, as a list or with commas between."""
NumberList = Annotated[list[int] | None, BeforeValidator(_split_numbers)]
"""Whole numbers, as a list or with commas between; or one of them."""
_TRIPS = re.compile(r"(\d{1,15}) ?trips")
"""A number of trips as a budget."""


def read_budget(value: Any) -> Any:
    """Return a share from "10%" or 0.1, or a number of trips as "500trips"; reject a bare whole number, which may mean either."""
    trips = _TRIPS.fullmatch(str(value).strip())
    if trips is not None:
        return f"{int(trips[1])}trips"
    number, percent = _share_of(value)
    if not (0 <= number < 1 or (number == 1 and (percent or isinstance(value, float)))):
        raise ValueError("a share of the trips such as 10% or 0.1, or a number of them such as 500trips")
    return number


def read_share_of_trajectories(value: Any) -> Any:
    """Return a share below 1 from "2%" or 0.02."""
    number, _ = _share_of(value)
    if not 0 <= number < 1:
        raise ValueError("a share below 100%, such as 2% or 0.02")
    return number


def _share_of(value: Any) -> tuple[float, bool]:
    """Return a number, -1 for other text, and whether it is in percent."""
    text = str(value).strip()
    percent = text.endswith("%")
    try:
        number = float(Decimal(text.removesuffix("%").strip()) / (100 if percent else 1))
    except ArithmeticError:
        number = -1.0
    return (-1.0 if isinstance(value, bool) else number), percent


Budget = Annotated[float | str, BeforeValidator(read_budget)]
"""A share of the trips, below 1 or in percent up to "100%"; or a number of them, as "500trips"."""


class Budgeted(Params):
    """The suppression budget."""

    suppress: Budget = Field(0.1, title="Trips that may be suppressed")
    """Budget of suppressed trips in each time step: a share such as 10% or 0.1, or a number such as 500trips."""

    def max_suppressed(self, volume: int) -> int:
        """Return how many trips of a volume may be suppressed."""
        if isinstance(self.suppress, str):
            return int(self.suppress.removesuffix("trips"))
        return trips_within(self.suppress, volume)


class GroupingParams(Params):
    """Parameters of every method that publishes groups of trajectories."""

    k: int = Field(3, ge=2, title="Smallest group (k)")
    """Smallest number of people of a group."""
    suppress: Annotated[float, BeforeValidator(read_share_of_trajectories)] = Field(
        0.0, title="Share that may be suppressed"
    )
    """Share of the trajectories that may be suppressed, such as 2%: whole groups, the most distorted first."""


class TimePartitioned(Params):
    """Areas by time step, or the same ones in all time steps."""

    time_partition: Literal["steps", "stable"] = Field("steps", title="Areas over time")
    """steps: areas of each time step, which are finer; stable: the same areas in all time steps."""
    stable_by: StepClass = Field("all", title="Time steps that share areas")
    """With stable areas: which time steps share them: all, or those of one hour of the day or week, or of one type of day."""

    @model_validator(mode="after")
    def _needs_stable(self) -> Self:
        """Reject classes of time steps where each step has different areas."""
        if self.stable_by != "all" and self.time_partition != "stable":
            raise ValueError(Text("{needed} with {stable_by}", needed=Option("time_partition", "stable")), "Add it")
        return self


def _word_or_number(words: tuple[str, ...], fits: Callable[[float], bool], wanted: str) -> Callable[[Any], Any]:
    """Return a validator of one of some words, or of a number that fits, also as text."""

    def read(value: Any) -> Any:
        if isinstance(value, str) and value in words:
            return value
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if isinstance(value, bool) or not fits(number):
            raise ValueError(wanted)
        return number

    return read


# Costs are compared as exact fractions, so that weights have few decimals.
_hour_weight = _word_or_number(
    (), lambda x: 0 <= x <= 10**6 and x == round(x, 2), "a number from 0 with at most two decimals"
)


def _longest(value: Any) -> Any:
    """Reject anything but a length of time of at most a day."""
    try:
        seconds = step_seconds(value)
    except ParameterError:
        seconds = None
    if seconds is None or seconds > DAY_S:
        raise ValueError("a length of time of at most a day, such as 4h or 24h")
    return value


class AdaptiveInTime(TimePartitioned):
    """Areas by time step or by intervals of time that fit the flows, or the same ones in all time steps."""

    time_partition: Literal["steps", "adaptive", "stable"] = Field("steps", title="Areas over time")  # type: ignore[assignment]
    """steps: areas of each time step; adaptive: intervals of time that are longer where few people travel, with finer areas;
    stable: the same areas in all time steps."""
    hour_weight: Annotated[float, BeforeValidator(_hour_weight)] = Field(5.0, json_schema_extra={"metavar": "X"})
    """With adaptive intervals: how many tiles an hour is worth. A lower weight gives longer intervals and finer areas."""
    longest: Annotated[str, BeforeValidator(_longest)] = Field(
        "24h", title="Longest interval", json_schema_extra=DURATION
    )
    """With adaptive intervals: the longest published interval, such as 4h; at most a day."""

    @property
    def longest_s(self) -> int:
        """Return the seconds of the longest interval."""
        return step_seconds(self.longest) or DAY_S

    @model_validator(mode="after")
    def _needs_adaptive(self) -> Self:
        """Reject options of intervals where each row is of one time step."""
        fields = type(self).model_fields
        given = [name for name in ("hour_weight", "longest") if getattr(self, name) != fields[name].default]
        if given and self.time_partition != "adaptive":
            raise ValueError(
                Text("{needed} with {given}", needed=Option("time_partition", "adaptive"), given=Option(given[0])),
                "Add it",
            )
        return self


_EXPECTED = {
    "missing": "a value",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "a number of at least {ge}",
    "less_than": "a number below {lt}",
    "less_than_equal": "a number of at most {le}",
    "finite_number": "a finite number",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "text of the pattern '{pattern}'",
    "string_too_short": "{min_length} or more characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "a list of {min_length} or more",
    "too_long": "a list of at most {max_length}",
}
"""The expected value by the type of pydantic's error, with its bounds."""
_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "list": "a list",
    "dict": "names and values",
    "json": "valid JSON",
}


def expected(error: Any) -> tuple[str | Text, str | Text]:
    """Return the expected value and the remedy ("" if there is none) from one of pydantic's errors."""
    kind = str(error["type"])
    if kind == "value_error":  # one of ours: the expected value, and a remedy if that is not plain
        what, remedy = (*error["ctx"]["error"].args, "")[:2]
        return what, remedy
    fallback = next((words for name, words in _TYPES.items() if kind.startswith(f"{name}_")), "another value")
    return _EXPECTED.get(kind, fallback).format_map(error.get("ctx", {})), "Give it" if kind == "missing" else ""


def no_such_parameter(name: str, known: Sequence[str]) -> ParameterError:
    """Return the error for a parameter that does not exist, with the nearest one where one is near."""
    begun = [each for each in known if each.startswith(name)]
    near = begun or get_close_matches(name, known, n=1, cutoff=0.7)
    hint = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known) or 'none'}."
    return ParameterError(Option(name), f"there is no such parameter. {hint}")


def _error(error: ValidationError, known: list[str]) -> ParameterError:
    first = error.errors(include_url=False)[0]
    # The rest of the location names the members of a union, which does not help the user.
    subject = Option(str(first["loc"][0])) if first["loc"] else "parameters"
    if first["type"] == "extra_forbidden":
        return no_such_parameter(str(first["loc"][0]), known)
    got = first["input"]
    shown = f", got {got!r}" if isinstance(got, bool | int | float | str) and len(repr(got)) < 60 else ""
    what, remedy = expected(first)
    ending = Text(" {remedy}.", remedy=remedy) if remedy else ""
    return ParameterError(subject, Text("Expected {what}{shown}.{ending}", what=what, shown=shown, ending=ending))


_target = _word_or_number(("auto", "sample"), lambda x: 0 < x < 2**53, "auto, sample, or a volume above 0")
TargetVolume = Annotated[
    Literal["auto", "sample"] | float, BeforeValidator(_target), Field(json_schema_extra={"metavar": "VOLUME"})
]
"""Target volume of each origin: a number of trips, or the way to choose it."""


_min_volume = _word_or_number(("auto",), lambda x: 1 <= x < 2**53 and x == int(x), "auto, or a whole number from 1")
MinVolume = Annotated[
    Literal["auto"] | int, BeforeValidator(_min_volume), Field(json_schema_extra={"metavar": "VOLUME"})
]
"""Smallest published volume: a number of trips, or chosen from the noise."""


_time_weight = _word_or_number(
    ("auto", "mobidatalab", "mean-ratio"), lambda x: 0 <= x < 1e9, "auto, mobidatalab, mean-ratio, or a number from 0"
)
TimeWeight = Annotated[
    Literal["auto", "mobidatalab", "mean-ratio"] | float, BeforeValidator(_time_weight),
    Field(json_schema_extra={"metavar": "WEIGHT"}),
]  # fmt: skip
"""Weight of time relative to space in a distance: a number, or the way to choose it."""


def _distance(value: Any) -> Any:
    """Return our name of a distance for its name in another tool; other values are rejected later."""
    return next((kind.name for kind in DISTANCES if value in kind.aliases), value)


TrajectoryDistance = Annotated[DistanceName, BeforeValidator(_distance)]
"""A distance between trajectories, by its name or by one that it has in another tool."""


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
    title
        Its label in a form.
    kind
        "int", "float", "bool", "text", "choice" or "share" (a number below 1, or percents such as 10%).
    default
        Its default, None where there is none to show.
    required
        Whether it has no default.
    choices
        The values of a choice.
    more
        Whether it accepts other forms, such as 10% or names in other tools.
    bounds
        The allowed range in words, such as "at least 2".
    unit
        Its unit, from the name's suffix.
    model
        The model that declares it.
    metavar, short
        The placeholder of its value on the command line, such as FILE, and its short name, such as -k; "" for the default.
    """

    name: str
    title: str
    kind: Kind
    default: Any
    required: bool
    choices: tuple[str, ...]
    more: bool
    bounds: str
    unit: str
    model: type[Params]
    metavar: str = ""
    short: str = ""

    @property
    def option(self) -> str:
        """Return its name on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def help(self) -> str:
        """Return its meaning, from the string below its declaration."""
        return " ".join((self.model.model_fields[self.name].description or "").split())


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
        share = any(getattr(m, "func", None) in (read_budget, read_share_of_trajectories) for m in info.metadata)
        kind = "share" if share else "text"  # it accepts other forms, such as 10%
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    unit = next((suffix for suffix in _UNITS if name.endswith(suffix)), "")
    return Row(
        name=name,
        title=info.title or name.removesuffix(unit).replace("_", " ").capitalize(),
        kind=kind,
        default=None if info.is_required() else info.default,
        required=info.is_required(),
        choices=choices,
        more=more,
        bounds=_bounds(info),
        unit=_UNITS.get(unit, ""),
        model=model,
        metavar=str(extra.get("metavar", "")),
        short="-k" if name == "k" else str(extra.get("short", "")),
    )


def _kind(annotation: Any) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(annotation) in (Union, types.UnionType):
        inner = [a for a in get_args(annotation) if a is not type(None)]
        if bool in inner:
            return "bool", ()
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
            if bound is not None and bound < 2**31:  # larger ones are limits of the machine
                parts.append(f"{text} {bound:,.12g}")
    return ", ".join(parts)
