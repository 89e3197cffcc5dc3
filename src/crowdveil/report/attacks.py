"""What adversaries find, before and after: as lines for people, as JSON, and as a table of individuals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.attacks.adversary_view import AttackScenario, Units
from crowdveil.attacks.base import USUAL_K, AllParams, Attack, Exposure, Interval, Risk, SightParams
from crowdveil.attacks.od.published import Published
from crowdveil.compare.candidates import aligned
from crowdveil.errors import InputError, Option, ParameterError, counted
from crowdveil.io.tables import write_table
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.progress import Progress
from crowdveil.registry import ATTACKS, find_attack

ALL = "all"


@dataclass(frozen=True, eq=False)
class Attacked:
    """Risks of trajectories. `found["location"]` are those of one attack: before, and after where there is a release.

    Attributes
    ----------
    data
        The trajectories.
    k
        The crowd that risks are held against.
    risks
        By the name of the attack: in the original, and in the release (None without one).
    parameters
        What each adversary was told to know.
    """

    data: Trajectories
    k: int
    risks: dict[str, tuple[Risk, Risk | None]]
    parameters: dict[str, dict[str, Any]]

    def __getitem__(self, name: str) -> tuple[Risk, Risk | None]:
        return self.risks[find_attack(name).name]

    def lines(self) -> list[str]:
        """A table for people, and what is easily overlooked in it."""
        head = ["adversary", "mean risk", "highest", "found for sure", f"above 1/{self.k:,}", "by random knowledge", ""]
        rows = [
            [find_attack(name).title, *_columns(sides, self.k), _remark(sides)] for name, sides in self.risks.items()
        ]
        return [*aligned([head, *rows]), "", *self._notes()]

    def _notes(self) -> list[str]:
        before, after = next(iter(self.risks.values()))
        who = counted(len(before.tried), "person" if before.units == "people" else "trajectory",
                      "people" if before.units == "people" else "trajectories")  # fmt: skip
        of = f" of {before.of:,}, drawn at random" if len(before.tried) < before.of else ""
        notes = [f"Of {who}{of}: the risk of each is that of the worst choice of what is known."]
        if after is not None:
            notes.append("Before → after: in the original, and in the release.")
            if not after.paired:
                notes.append(
                    "Which published trajectory is whose was not given (pairing): risks after are those of whoever matches."
                )
        if any(not side.average.exact for sides in self.risks.values() for side in sides if side is not None):
            notes.append(
                "By random knowledge: an estimate; the interval that holds it in 95 of 100 cases is in the JSON."
            )
        return notes

    def as_json(self) -> dict[str, Any]:
        """Everything but single individuals."""
        before, _ = next(iter(self.risks.values()))
        return {
            "units": before.units,
            "k": self.k,
            "attacks": {
                name: {
                    "title": find_attack(name).title,
                    "parameters": self.parameters[name],
                    "before": _as_json(sides[0], self.k),
                    "after": None if sides[1] is None else _as_json(sides[1], self.k),
                }
                for name, sides in self.risks.items()
            },
        }

    def table(self) -> pa.Table:
        """A row for each attack and individual that was tried, by the id in the input."""
        columns: dict[str, list[Any]] = {"attack": [], "id": [], "risk_before": [], "risk_after": []}
        for name, (before, after) in self.risks.items():
            ids = self.data.people_ids if before.units == "people" else self.data.ids
            columns["attack"] += [name] * len(before.tried)
            columns["id"] += [str(ids[i]) for i in _individuals(self.data, before).tolist()]
            columns["risk_before"] += before.risk.tolist()
            columns["risk_after"] += [None] * len(before.tried) if after is None else after.risk.tolist()
        return pa.table({**columns, "risk_after": pa.array(columns["risk_after"], pa.float64())})

    def write(self, path: Path) -> None:
        """Write it as the ending of the name says: .json without individuals, .csv or .parquet with them."""
        if path.suffix.lower() == ".json":
            path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            write_table(self.table(), path)


@dataclass(frozen=True, eq=False)
class Exposed:
    """What adversaries find in a release of flows. `found["homogeneity"]` is what one of them finds."""

    k: int
    exposures: tuple[Exposure, ...]

    def __getitem__(self, name: str) -> Exposure:
        return next(found for found in self.exposures if found.name == find_attack(name).name)

    def lines(self) -> list[str]:
        """What each one finds, in a sentence, and its numbers."""
        lines = []
        for found in self.exposures:
            verdict = f"finds fewer than {self.k:,}" if found.beats_k else f"finds no crowd below {self.k:,}"
            lines += [
                f"{found.title}: {verdict if found.name != 'homogeneity' else 'told, not guaranteed'}",
                f"  {found.explanation}",
            ]
            lines += [f"  {name.replace('_', ' '):44}{_shown(value)}" for name, value in found.values.items()]
        return lines

    def as_json(self) -> dict[str, Any]:
        """Everything, by name."""
        return {
            "k": self.k,
            "attacks": {
                found.name: {
                    "title": found.title,
                    "values": dict(found.values),
                    "worst": found.worst,
                    "beats_k": found.beats_k,
                    "explanation": found.explanation,
                }
                for found in self.exposures
            },
        }

    def table(self) -> pa.Table:
        """A row for each number."""
        rows = [(found.name, name, value) for found in self.exposures for name, value in found.values.items()]
        names, values, numbers = ([row[i] for row in rows] for i in range(3))
        return pa.table(
            {
                "attack": pa.array(names, pa.string()),
                "value": pa.array(values, pa.string()),
                "number": pa.array([None if n is None else float(n) for n in numbers], pa.float64()),
            }
        )

    def write(self, path: Path) -> None:
        """Write it as the ending of the name says: .json, .csv or .parquet."""
        if path.suffix.lower() == ".json":
            path.write_text(json.dumps(self.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        else:
            write_table(self.table(), path)


def named_attacks(name: str, takes: type) -> list[Attack]:
    """One attack, or all on what it is made on."""
    if name != ALL:
        return [find_attack(name)]
    return [attack for attack in map(find_attack, ATTACKS) if attack.takes is takes]


def attack_params(attacks: Sequence[Attack], name: str, values: dict[str, Any]) -> list[Params]:
    """The parameters of each attack; those of all are given together, and each takes its own."""
    if name != ALL or not issubclass(attacks[0].params, SightParams):
        return [attack.params.checked(values) for attack in attacks]
    shared = AllParams.checked(values)
    return [attack.params(**{n: getattr(shared, n) for n in attack.params.model_fields}) for attack in attacks]


def attacked(
    data: Trajectories,
    release: TrajectoryRelease | None,
    attacks: Sequence[Attack],
    params: Sequence[Any],
    k: int | None,
    progress: Progress,
) -> Attacked:
    """Attack trajectories, and a release of them where there is one."""
    if len(data) == 0:
        raise InputError("input", "there is no trajectory in it, so that nobody can be found.")
    scene = AttackScenario(data, release, _units(params[0].units, data, release), data.counts)
    risks = {}
    for attack, chosen in zip(attacks, params, strict=True):
        before = attack.run(scene.before(), chosen, progress)
        after = None if release is None else attack.run(scene, chosen, progress)
        risks[attack.name] = before, after
    told = {a.name: p.model_dump(mode="json") for a, p in zip(attacks, params, strict=True)}
    return Attacked(data, params[0].k or k or USUAL_K, risks, told)


def exposed(published: Published, attacks: Sequence[Attack], params: Sequence[Any]) -> Exposed:
    """Attack a release of flows."""
    found = tuple(attack.run(published, chosen) for attack, chosen in zip(attacks, params, strict=True))
    return Exposed(published.crowd(params[0]), found)


def _units(wanted: str, data: Trajectories, release: TrajectoryRelease | None) -> Units:
    """Whose records go together, as asked for or as is known."""
    if wanted == "people" and data.counts != "people":
        raise ParameterError(
            Option("units"), f"people are not known here; name their column with {Option('user')}, or leave units out."
        )
    if wanted == "people" or (
        wanted == "auto" and data.counts == "people" and (release is None or release.person is not None)
    ):
        return "people"
    return "trajectories"


def _individuals(data: Trajectories, risk: Risk) -> Any:
    """People, or trajectories, that were tried; people without a trajectory are not among them."""
    return np.unique(data.person)[risk.tried] if risk.units == "people" else risk.tried


def _columns(sides: tuple[Risk, Risk | None], k: int) -> list[str]:
    before, after = sides
    shown = [_percents(before, k)] if after is None else [_percents(before, k), _percents(after, k)]
    return [" → ".join(values) for values in zip(*shown, strict=True)]


def _percents(risk: Risk, k: int) -> list[str]:
    numbers = (risk.mean.value, risk.highest, risk.unique.value, risk.above(k).value, risk.average.value)
    return [f"{100 * number:.1f} %" for number in numbers]


def _remark(sides: tuple[Risk, Risk | None]) -> str:
    return "" if all(side is None or side.exact for side in sides) else "at least: not all choices were looked at"


def _as_json(risk: Risk, k: int) -> dict[str, Any]:
    return {
        "individuals": risk.of,
        "tried": len(risk.tried),
        "exact": risk.exact,
        "paired": risk.paired,
        "mean": _interval(risk.mean),
        "highest": risk.highest,
        "found_for_sure": _interval(risk.unique),
        "above_1_over_k": _interval(risk.above(k)),
        "by_random_knowledge": _interval(risk.average),
    }


def _interval(found: Interval) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "exact": found.exact}


def _shown(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}"
