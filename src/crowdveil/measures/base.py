"""Define the record of a measure, a request for it, and its scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from crowdveil.errors import Option, ParameterError
from crowdveil.model.arrays import Floats
from crowdveil.params import Params

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True)
class Measure:
    """The record of a measure. The command line, the docs, the service and the web page are generated from it.

    Attributes
    ----------
    name
        In lower case with hyphens.
    title
        A few words for a table.
    unit
        Its unit; "" for shares and other bare numbers.
    better
        The better direction for users of the data.
    takes
        The model of the original: `Flows` or `Trajectories`.
    compute
        comparison → a value for each group of it (a time step, or all of them pooled), NaN where it is undefined; with
        `parts`, a column for each of them. For flows the comparison is an `OdComparison`, for trajectories, which are one
        group, a `TrajectoryComparison`. `params`, if any, are the second argument.
    doc
        Its meaning, in a sentence or two.
    symbol
        Its symbol in papers.
    parts
        The names of the columns of a measure that is a small table.
    params
        Its parameters, None where it has none; they include the seed of random choices. Where the columns depend on them,
        they have `parts` of their own.
    """

    name: str
    title: str
    unit: str
    better: Better
    takes: type
    compute: Callable[..., Floats]
    doc: str
    symbol: str = ""
    parts: tuple[str, ...] = ()
    params: type[Params] | None = None

    def with_parts_of(self, params: Params | None) -> Measure:
        """Return the measure with its columns for these parameters."""
        parts = getattr(params, "parts", self.parts)
        return self if parts == self.parts else replace(self, parts=parts)

    def of(self, compared: Any, params: Params | None = None) -> Floats:
        """Return its values; with its defaults where no parameters are given."""
        given = () if self.params is None else (self.params() if params is None else params,)
        values = self.compute(compared, *given)
        return compared.in_listed_steps(values) if hasattr(compared, "in_listed_steps") else values


@dataclass(frozen=True)
class MeasureRequest:
    """A measure with its parameters, None where it has none, and its label among others."""

    label: str
    measure: Measure
    params: Params | None = None

    @classmethod
    def of(cls, measure: Measure, values: Mapping[str, Any] | None = None) -> MeasureRequest:
        """Make a request with parameters by name; raise `ParameterError` with the first problem."""
        given = dict(values or {})
        if measure.params is None:
            if given:
                raise ParameterError(
                    measure.name, Option(next(iter(given))), "there is no such parameter; it has none."
                )
            return cls(measure.name, measure)
        try:
            params = measure.params.checked(given)
        except ParameterError as error:
            raise ParameterError(measure.name, error.text) from None
        label = ":".join((measure.name, *(f"{name}={value}" for name, value in given.items())))
        return cls(label, measure.with_parts_of(params), params)


@dataclass(frozen=True, eq=False)
class Scores:
    """The values of one measure; NaN where it is undefined. With `parts` each has one column a part.

    Attributes
    ----------
    asked
        The measure, with its parameters.
    by_step
        One for each time step (matrix) of the original; trajectories are one group.
    mean
        The mean over the steps in which it is defined, as in papers.
    pooled
        Over all steps at once, as one large matrix with a row for each origin and step.
    """

    asked: MeasureRequest
    by_step: Floats
    mean: Floats
    pooled: Floats

    @property
    def measure(self) -> Measure:
        """Return the measure."""
        return self.asked.measure

    def columns(self) -> list[tuple[str, Floats, float, float]]:
        """Return part, values by step, mean and pooled value of each column; one without a name where there are no parts."""
        if not self.measure.parts:
            return [("", self.by_step, float(self.mean), float(self.pooled))]
        return [
            (part, self.by_step[:, i], float(self.mean[i]), float(self.pooled[i]))
            for i, part in enumerate(self.measure.parts)
        ]


def scores(asked: MeasureRequest, compared: Any) -> Scores:
    """Compute a measure by step and over all steps. A comparison has `all_steps()`, itself with one group."""
    by_step = asked.measure.of(compared, asked.params)
    whole = compared.all_steps()
    pooled = by_step if whole is compared else asked.measure.of(whole, asked.params)
    return Scores(asked, by_step, mean_of_steps(by_step), pooled[0])


def mean_of_steps(by_step: Floats) -> Floats:
    """Return the mean over the steps in which a measure is defined."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing is NaN, as intended
        return np.asarray(np.nanmean(by_step, axis=0), np.float64)


def shown(value: float, unit: str) -> str:
    """Return a number with about four digits, "–" where it is undefined."""
    if not np.isfinite(value):
        return "–"
    whole = value == int(value) and value != 1  # a share of 1 is shown like the other shares
    size = abs(value)
    text = f"{value:,.0f}" if size >= 1000 or whole else f"{value:.4g}" if size > 1 else f"{value:.4f}"
    return f"{text} {unit}".rstrip()


def ratio(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, NaN where the whole is 0."""
    quotient: Floats = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=quotient, where=whole != 0)
    return quotient
