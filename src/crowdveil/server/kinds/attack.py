"""Attack trajectories, before and after they were anonymized, or a release of flows."""

from __future__ import annotations

from typing import Any, Literal

from crowdveil.api import attack as api
from crowdveil.attacks.base import AllAttackParams
from crowdveil.attacks.dominance import Groups
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.attacks.trajectory.aggregated import AggregatedTrajectories
from crowdveil.comparison.candidates import CONFIDENTIAL
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.registry import ATTACKS, EXPERIMENTS, find_attack
from crowdveil.report.attack_results import ALL
from crowdveil.server.kinds.base import JobOutput, Kind, PlainReading, Task, values_of
from crowdveil.server.queue.files import TABLES

PACKED = (".zip",)


class AttackOptions(Params):
    """Parameters of every attack: the form of its result."""

    format: Literal["json", "csv", "parquet"] = "json"
    """Form of the result: everything but single individuals as JSON, or each of them in a table."""


def _on_trajectories(name: str) -> bool:
    """Whether trajectories may be attacked by this name; all attacks are on whatever is given."""
    return name == ALL or find_attack(name).takes in (Trajectories, AggregatedTrajectories, Groups)


def _models(name: str) -> tuple[type[Params], ...]:
    own = AllAttackParams if name == ALL else find_attack(name).params
    return (own, PlainReading, AttackOptions) if _on_trajectories(name) else (own, AttackOptions)


def _needs(name: str) -> dict[str, tuple[str, ...]]:
    if name != ALL and find_attack(name).takes is PublishedReleases:
        return {"data": PACKED, "release": PACKED}
    both = (*TABLES, *PACKED)
    return {"data": both if name in (ALL, "dominance") else TABLES if _on_trajectories(name) else PACKED}


def _run(task: Task) -> JobOutput:
    form = AttackOptions.checked(values_of(task.values, AttackOptions)).format
    models = [model for model in _models(task.name) if model is not AttackOptions]
    found = api.attack(
        task.name, task.files["data"], task.files.get("release"), task.out / f"attack.{form}",
        pairing=task.files.get("pairing"), **task.reporting, **values_of(task.values, *models),
    )  # fmt: skip
    return JobOutput(task.notes.sentences(), [*found.lines(), *([CONFIDENTIAL] if found.confidential else [])])


def _about(name: str) -> dict[str, Any]:
    if name == ALL:
        return {"summary": "All attacks on what is given: trajectories, or a release of flows."}
    attack = find_attack(name)
    several = "releases" if attack.takes is PublishedReleases else "release"
    takes = "trajectories" if _on_trajectories(name) else several
    return {"summary": attack.summary, "title": attack.title, "takes": takes}


KIND = Kind(
    verb="attack",
    collection="attacks",
    summary="Find out what an adversary gets who knows a little: from trajectories, before and after, or from flows.",
    names=lambda: [ALL, *ATTACKS, *EXPERIMENTS],
    find=lambda name: name if name == ALL else find_attack(name).name,
    models=_models,
    required_files=_needs,
    optional_files=lambda name: {"release": PACKED, "pairing": TABLES} if _on_trajectories(name) else {},
    run=_run,
    about=_about,
    example={"tile_m": 500},
)
