"""Compare methods on the same data. Nothing is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import Field

from crowdveil.api import compare as api
from crowdveil.comparison.candidates import CONFIDENTIAL, announcement, data_kind_of, varied_values, with_each
from crowdveil.comparison.candidates import KINDS as INPUTS
from crowdveil.comparison.flows import FlowComparisonParams
from crowdveil.comparison.requested_measures import flow_columns
from crowdveil.comparison.tables import Comparison, conclusions, omissions, write_comparison
from crowdveil.comparison.trajectories import TrajectoryComparisonParams
from crowdveil.errors import Option, ParameterError, as_command_line
from crowdveil.model.flows import Flows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.reading import READINGS
from crowdveil.server.kinds.base import JobRequest, Kind, Task, values_of

NAMES: dict[str, type] = {INPUTS[takes][0]: takes for takes in (Flows, Trajectories)}
"""What is compared: methods for flows, or for trajectories."""
MOST = 50
"""Values of one list in a request."""
Varied = dict[str, list[str | int | float]]


class ChosenMethods(Params):
    """What is run in a comparison."""

    methods: list[str] | None = Field(None, min_length=1, max_length=MOST)
    """Names, with parameters as in joint:splits=dyadic. Default: all methods for the data."""
    vary: Varied | None = Field(None, max_length=MOST)
    """Values of other parameters by name: each method that has them runs with each."""


class FlowComparisonOptions(FlowComparisonParams):
    """Parameters that all methods of a comparison of flows share."""

    k: int | list[int] = 10  # type: ignore[assignment]
    """Minimum group size k, or a list of several."""


class TrajectoryComparisonOptions(TrajectoryComparisonParams):
    """Parameters that all methods of a comparison of trajectories share."""

    k: int | list[int] = Field([2, 4, 8])
    """Minimum group size k, or a list of several."""


SETTINGS: dict[type, type[Params]] = {Flows: FlowComparisonOptions, Trajectories: TrajectoryComparisonOptions}


def _find(name: str) -> str:
    if name not in NAMES:
        raise ParameterError(f"there are no methods for {name} to compare; known are {', '.join(NAMES)}.")
    return name


def _check(name: str, values: dict[str, Any]) -> None:
    """Raise where methods, k, varied parameters or measures mean nothing, before anything is read."""
    methods = values.get("methods")
    if data_kind_of(methods, NAMES[name]) is not NAMES[name]:
        raise ParameterError(
            Option("methods"), f"wanted methods for {name}; name others, or compare them by themselves."
        )
    check_crowds(values.get("k"))
    varied = varied_values(values.get("vary"))
    if varied and methods is not None:
        with_each(methods, varied)
    check_measures(NAMES[name], values.get("measures"))


def check_crowds(k: int | list[int] | None) -> None:
    """Raise unless every k is one, and there are not too many."""
    listed = [k] if isinstance(k, int) else k
    if listed is not None and not 0 < len(listed) <= MOST:
        raise ParameterError(Option("k"), f"wanted 1 to {MOST} numbers; change the list.")
    for each in listed or ():
        FlowComparisonParams.checked({"k": each})


def check_measures(takes: type, names: Any) -> None:
    """Raise where a measure is misspelled or for other data."""
    if takes is Flows:
        flow_columns(FlowComparisonParams.checked({"measures": names}).measures)
    else:
        _ = TrajectoryComparisonParams.checked({"measures": names}).columns


def _run(task: Task) -> JobRequest:
    takes = NAMES[task.name]
    options = values_of(task.values, ChosenMethods, SETTINGS[takes]) | values_of(
        task.values | task.files, READINGS[takes]
    )
    return noted(task, api.compare, task.files["data"], trajectories=takes is Trajectories, **options)


def noted(task: Task, compare: Callable[..., Comparison], *arguments: Any, **options: Any) -> JobRequest:
    """Compare, write the tables and plots, and return what the command line prints: also how much is compared."""
    announced = list[str]()

    def stage(name: str) -> None:
        announced.extend(announcement(name))
        task.stage(name)

    found = compare(*arguments, **task.reporting | {"stage": stage} | options)
    task.stage("drawing")
    write_comparison(found, task.out)
    return JobRequest(
        [*announced, *task.notes.sentences(), *omissions(found, as_command_line)],
        [*found.lines(), "", *conclusions(found), CONFIDENTIAL],
    )


def _about(name: str) -> dict[str, Any]:
    return {"summary": f"Methods for {name} on the same data, by what they lose and how long they take.", "takes": name}


KIND = Kind(
    verb="compare",
    collection="comparisons",
    summary="Compare methods on the same data, publishing nothing. The figures are exact and confidential.",
    names=lambda: list(NAMES),
    find=_find,
    models=lambda name: (ChosenMethods, SETTINGS[NAMES[name]], READINGS[NAMES[name]]),
    run=_run,
    about=_about,
    check=_check,
    packed=True,
    example={"methods": ["joint", "atg-dual", "oigh"], "k": [5, 10], "zone_id": "id"},
)
