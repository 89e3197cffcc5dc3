"""Run one method with several k, budgets and values of other parameters, and recommend one of them. Nothing is published."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from crowdveil.api import compare as api
from crowdveil.comparison.candidates import varied_values
from crowdveil.comparison.flows import FlowSample
from crowdveil.comparison.sweep import K, sweep_candidates
from crowdveil.comparison.trajectories import K as K_OF_TRAJECTORIES
from crowdveil.comparison.trajectories import TrajectoryComparisonParams, trajectory_sweep_candidates
from crowdveil.model.flows import Flows
from crowdveil.params import Params
from crowdveil.reading import READINGS
from crowdveil.registry import all_methods, find_method
from crowdveil.server.kinds.base import JobRequest, Kind, Task, values_of
from crowdveil.server.kinds.compare import MOST, Varied, check_measures, noted


class TriedValues(Params):
    """What a method is run with."""

    k: list[int] | None = Field(None, min_length=1, max_length=MOST)
    """Group sizes. Default: 5, 10 and 20 for flows, 2, 4 and 8 for trajectories."""
    suppress: list[str | float] | None = Field(None, min_length=1, max_length=MOST)
    """Budgets as shares, such as 5% or 0.05. Default: 5%, 10% and 20% for flows, if the method has one."""
    vary: Varied | None = Field(None, max_length=MOST)
    """Values of other parameters of the method by name, each of which is run."""
    method_parameters: dict[str, str | int | float] | None = Field(None, max_length=MOST)
    """Other parameters of the method that are the same in all runs."""


class TriedTrips(TriedValues):
    """What a method for flows is run with."""

    suppress_trips: list[int] | None = Field(None, min_length=1, max_length=MOST)
    """Budgets as numbers of trips, in place of shares."""


def _models(name: str) -> tuple[type[Params], ...]:
    takes = find_method(name).takes
    own = (TriedTrips, FlowSample) if takes is Flows else (TriedValues, TrajectoryComparisonParams)
    return (*own, READINGS[takes])


def _tried(values: dict[str, Any], usual: tuple[int, ...]) -> dict[str, Any]:
    """Return the values of a method with the usual k where none are given."""
    given = {n: v for n, v in values_of(values, TriedTrips).items() if v is not None and n != "method_parameters"}
    return {"k": usual, **given}


def _label(name: str, values: dict[str, Any]) -> str:
    """Return the method with the parameters that are the same in all runs, as in joint:splits=dyadic."""
    own = values.get("method_parameters") or {}
    return ":".join([name, *(f"{parameter}={value}" for parameter, value in own.items())])


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise where a method has no such parameter or a value is none of it, before anything is read."""
    takes, varied, label = find_method(name).takes, varied_values(values.get("vary")), _label(name, values)
    if takes is Flows:
        tried = _tried(values, K)
        sweep_candidates(label, tried["k"], tried.get("suppress"), tried.get("suppress_trips"), varied)
    else:
        trajectory_sweep_candidates(label, _tried(values, K_OF_TRAJECTORIES)["k"], values.get("suppress"), varied)
    check_measures(takes, values.get("measures"))


def _run(task: Task) -> JobRequest:
    of_flows, label = find_method(task.name).takes is Flows, _label(task.name, task.values)
    options = values_of(task.values | task.files, *_models(task.name))
    options.pop("method_parameters", None)
    options |= _tried(task.values, K if of_flows else K_OF_TRAJECTORIES)
    return noted(task, api.sweep if of_flows else api.sweep_trajectories, label, task.files["data"], **options)


def _swept() -> list[str]:
    """Return the methods that have a k, or are for trajectories and have other parameters."""
    return [
        name for name, method in all_methods().items() if "k" in method.params.model_fields or method.takes is not Flows
    ]


def _about(name: str) -> dict[str, Any]:
    method = find_method(name)
    return {"summary": method.summary, "takes": "flows" if method.takes is Flows else "trajectories"}


KIND = Kind(
    verb="sweep",
    collection="sweeps",
    summary="Run a method with several k and budgets, publishing nothing. The figures are exact and confidential.",
    names=_swept,
    find=lambda name: find_method(name).name,
    models=_models,
    run=_run,
    about=_about,
    check=_check,
    packed=True,
    example={"k": [5, 10, 20], "suppress": ["5%", "10%"], "zone_id": "id"},
)
