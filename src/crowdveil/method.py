"""What a method is: its parameters, its record, and the few types that every method's signature uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from crowdveil.errors import ParameterError
from crowdveil.guarantees.base import Guarantee
from crowdveil.model.flows import trips_within as trips_within
from crowdveil.model.release import Release
from crowdveil.model.reporting import Reporting
from crowdveil.progress import Progress

Status = Literal["proved", "argued", "heuristic"]
"""proved: the promise follows from the text of the method; argued: from an argument with stated assumptions;
heuristic: no promise of anonymity, only measured risk."""


Rows = Literal["exact", "overlapping", "noisy"]
"""What a row of released flows says. exact: the volume of all flows in it; overlapping: that of some of them, since rows
overlap; noisy: a volume with noise, so that nothing exact may be told beside it."""


class Params(BaseModel):
    """Base of every set of parameters: named, typed, bounded, documented once, by the string below each field."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, validate_default=True
    )

    @classmethod
    def checked(cls, values: dict[str, Any]) -> Any:
        """Parameters from plain values; the first thing that is wrong is told in one sentence."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise ParameterError(_sentence(error, list(cls.model_fields))) from None


class FlowParams(Params):
    """What every method for flows can be told."""

    k: int = Field(10, ge=2)
    """Smallest crowd."""
    report_small: bool = False
    """Report the withheld destinations of an origin as one area, where a crowd of k goes there."""
    include_empty: bool = True
    """Let reported areas hold places that nobody goes to; without them it can be seen that somebody goes to each part."""

    @property
    def reporting(self) -> Reporting:
        """What becomes of small volumes."""
        return Reporting(self.report_small, self.include_empty)


def _sentence(error: ValidationError, known: list[str]) -> str:
    first = error.errors(include_url=False)[0]
    # Of a union of types the rest of the place names the type that was tried, which nobody needs to know.
    name = str(first["loc"][0]) if first["loc"] else "parameters"
    if first["type"] == "extra_forbidden":
        return f"{name}: there is no such parameter; known are {', '.join(known) or 'none'}."
    reason = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ").rstrip(".")
    got = first["input"]
    shown = f", but got {got!r}" if isinstance(got, bool | int | float | str) and len(repr(got)) < 60 else ""
    return f"{name}: wanted {reason}{shown}."


@dataclass(frozen=True)
class Method:
    """The record of a method: what the command line, the docs and every other door are drawn from.

    Attributes
    ----------
    name
        What it does, in lower case with hyphens.
    takes
        The model that it works on: `Flows` or `Trajectories`.
    params
        Its parameters.
    run
        (data, params, rng, progress) → release. Reads no file, changes no input, draws from `rng` alone.
    promises
        What a release made with these parameters promises. The checkers know nothing of the method.
    status
        How sure the promise of anonymity is.
    needs_members
        Whether it puts flows together, and so must know who is behind each where k counts people.
    rows
        What the rows of its releases say, if they are flows.
    aliases
        Names of the method and of its parameters elsewhere.
    alias_factors
        What a value under such a name is multiplied by, where it is in another unit there.
    """

    name: str
    takes: type
    params: type[Params]
    run: Callable[[Any, Any, np.random.Generator, Progress], Release]
    promises: Callable[[Any, Any], tuple[Guarantee, ...]]
    status: Status
    doc: str
    needs_members: bool = False
    rows: Rows = "exact"
    aliases: tuple[str, ...] = ()
    parameter_aliases: tuple[tuple[str, str], ...] = ()
    alias_factors: tuple[tuple[str, float], ...] = ()

    @property
    def summary(self) -> str:
        """The first line of the method's docstring."""
        return self.doc.strip().splitlines()[0]


def _share(value: Any) -> Any:
    """Read "10%" as 0.1; numbers stay as they are."""
    text = str(value).strip()
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = -1.0
    if isinstance(value, bool) or not (0 <= number <= 1 or (number.is_integer() and 1 < number < 2**53)):
        raise ValueError("a share such as 10% or 0.1, or a whole number of trips")
    return number


Budget = Annotated[float, BeforeValidator(_share)]
"""How many trips may be withheld: a share up to 1 (also as "10%"), or a whole number above 1."""


def _word_or_number(words: tuple[str, ...], fits: Callable[[float], bool], wanted: str) -> Callable[[Any], Any]:
    """Reads one of some words, or a number that fits, also as text."""

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


_target = _word_or_number(("auto", "sample"), lambda x: 0 < x < 2**53, "auto, sample, or a volume above 0")
TargetVolume = Annotated[Literal["auto", "sample"] | float, BeforeValidator(_target)]
"""How much should leave each origin: a number of trips, or how it is to be found."""


_time_weight = _word_or_number(
    ("document", "mean-ratio"), lambda x: 0 <= x < 1e9, "document, mean-ratio, or a number from 0"
)
TimeWeight = Annotated[Literal["document", "mean-ratio"] | float, BeforeValidator(_time_weight)]
"""What time counts beside space in a distance: a number, or how it is to be found."""
