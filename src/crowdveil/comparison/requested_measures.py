"""The measures that a measurement or a comparison requests by name, with parameters, and their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator

from crowdveil.errors import Option, ParameterError
from crowdveil.measures.base import MeasureRequest
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import named_parameters
from crowdveil.registry import all_measures, find_measures

SYMBOLS = ("Ḡ", "E", "D", "S")
"""Measures whose columns are named by their symbols in the papers."""
USUAL: dict[type, tuple[str, ...]] = {Flows: SYMBOLS, Trajectories: ("sid", "aid", "trajectories-removed")}
"""The default measures of a comparison."""
FIGURES = {"multiplier": "λ*", "v-target": "v_target"}
"""Numbers of the solution of a matrix that a comparison can show, with their symbols; NaN for methods without them."""
HEADLINES: dict[type, tuple[str, ...]] = {
    Flows: ("generalization", "suppressed", "reconstruction-error", "distribution-distance", "trip-length"),
    Trajectories: ("rmse", "sid", "visits-per-location", "trajectories-removed", "locations-removed"),
}
"""The default measures of a measurement."""
ALL = "all"
"""In place of names: all measures."""
_KINDS = {Flows: "flows", Trajectories: "trajectories"}


def _joined(value: Any) -> Any:
    """Join a list of names with commas; leave any other value."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value


Names = Annotated[str | None, BeforeValidator(_joined)]
"""Names separated by commas, or a list of them; None for the default."""


@dataclass(frozen=True)
class Column:
    """A measure, or a number of the solution, as a column of a comparison.

    Attributes
    ----------
    key
        Its key among the values of a method.
    name
        Its name in tables.
    title
        Its heading in a text.
    asked
        The measure; None for a number of the solution.
    part
        The number of its part, if the measure is a small table.
    """

    key: str
    name: str
    title: str
    asked: MeasureRequest | None
    part: int | None = None

    @property
    def unit(self) -> str:
        """Return the unit of the measure."""
        return "" if self.asked is None else self.asked.measure.unit

    def of(self, values: Floats) -> Floats:
        """Return the values of the column from those of the measure."""
        return values if self.part is None else values[:, self.part]


def columns_of(requests: Sequence[MeasureRequest]) -> list[Column]:
    """Return a column for each measure, or for each part of a measure that is a small table."""
    made = []
    for asked in requests:
        alone = sum(other.measure.name == asked.measure.name for other in requests) == 1
        title = asked.measure.symbol if alone and asked.measure.symbol else asked.label
        key = title if title in SYMBOLS else asked.label
        parts = asked.measure.parts
        made += [
            Column(f"{key} {part}", f"{asked.label} {part}", f"{title} {part}", asked, i)
            for i, part in enumerate(parts)
        ] or [Column(key, asked.label, title, asked)]
    return made


def comparison_columns(names: str | None, takes: type) -> list[Column]:
    """Return the columns of a comparison: of named measures, of the default ones, or of every one for `all`."""
    if names is None:
        return columns_of(named_measures(USUAL[takes], takes))
    if names.strip() == ALL:
        return columns_of(named_measures(None, takes))
    texts = [text.strip() for text in names.split(",") if text.strip()]
    wanted = {FIGURES.get(text, text): text for text in FIGURES} if takes is Flows else {}
    figures = [wanted.get(text, text) for text in texts if takes is Flows and wanted.get(text, text) in FIGURES]
    others = [text for text in texts if wanted.get(text, text) not in figures]
    measured = columns_of(named_measures(others, takes)) if others or not figures else []
    return [*measured, *(Column(name, name, FIGURES[name], None) for name in dict.fromkeys(figures))]


def figures_of(name: str, names: Sequence[str], figures: Floats | None, steps: int) -> Floats:
    """Return a number of each matrix from those of a release with these columns; NaN if there is none."""
    if figures is None or name not in names or figures.shape != (steps, len(names)):
        return np.full(steps, np.nan)
    values: Floats = figures[:, list(names).index(name)]
    return values


def named_measures(names: Sequence[str | MeasureRequest] | None, takes: type = Flows) -> list[MeasureRequest]:
    """Return the distinct measures of names, symbols or aliases, with parameters as in `rmse:distance=dtw`.

    Without names, return all measures of `takes`.
    """
    if names is None:
        return [MeasureRequest.of(measure) for measure in all_measures().values() if measure.takes is takes]
    found: dict[str, MeasureRequest] = {}
    for name in names:
        for asked in [name] if isinstance(name, MeasureRequest) else parsed(name):
            if asked.measure.takes is not takes:
                raise ParameterError(
                    asked.measure.name,
                    f"Expected a measure of {_KINDS[takes]}, got one of {_KINDS[asked.measure.takes]}. Name another.",
                )
            found.setdefault(asked.label, asked)
    if not found:
        raise ParameterError(
            Option("measures"), "Expected at least one measure, got none. Omit the option for the default ones."
        )
    return list(found.values())


def requested(names: Sequence[str | MeasureRequest] | None, takes: type) -> list[MeasureRequest]:
    """Return the named measures, the default ones without names, or all of them for "all"."""
    if names is not None and list(names) == [ALL]:
        return named_measures(None, takes)
    return named_measures(HEADLINES[takes] if names is None else names, takes)


def parsed(text: str) -> list[MeasureRequest]:
    """Return the measures of a name with parameters, as in `rmse:distance=dtw`."""
    name, values = named_parameters(text, "rmse:distance=dtw")
    return asked_for(name, values)


def asked_for(name: str, values: Mapping[str, Any]) -> list[MeasureRequest]:
    """Return the measures of a name with their parameters; several measures share them."""
    measures = find_measures(name)
    known = {key for measure in measures if measure.params is not None for key in measure.params.model_fields}
    unknown = [key for key in values if key not in known]
    if unknown:
        listed = f". Known are {', '.join(sorted(known))}" if known else "; it has none"
        raise ParameterError(name, f"{unknown[0]}: there is no such parameter{listed}.")
    return [
        MeasureRequest.of(
            measure, {key: v for key, v in values.items() if key in getattr(measure.params, "model_fields", {})}
        )
        for measure in measures
    ]
