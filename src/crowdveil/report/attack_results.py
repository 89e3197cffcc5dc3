"""Results of attacks on original and release: as text, as JSON, and as a table of individuals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from crowdveil.attacks.adversary_view import DEFAULT_K, AggregatedTrajectories, AttackScenario, Units
from crowdveil.attacks.base import AdversaryParams, AllAttackParams, Attack, Exposure, Interval, Risk
from crowdveil.attacks.dominance import Groups
from crowdveil.attacks.od.published import Published
from crowdveil.attacks.od.releases import PublishedReleases
from crowdveil.engine.progress import Progress
from crowdveil.errors import InputError, Option, ParameterError, Text, as_command_line, counted, render
from crowdveil.io.tables import write_json_or_table
from crowdveil.model.release import TrajectoryRelease
from crowdveil.model.tabular import Tabular, align_rows
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.registry import ATTACKS, find_attack

ALL = "all"
RECOVERY = "trajectory-recovery"
REPORTED = ("homogeneity", "destination-belief", "dominance", RECOVERY)
"""Attacks that no guarantee covers."""


@dataclass(frozen=True, eq=False, repr=False)
class AttackResults(Tabular):
    """Re-identification risks of trajectories. `results["location"]` has those of one attack.

    Attributes
    ----------
    data
        The original trajectories.
    k
        Group size that risks are compared with.
    risks
        By the name of the attack: in the original, and in the release (None without one).
    parameters
        Background knowledge of each adversary.
    """

    data: Trajectories
    k: int
    risks: dict[str, tuple[Risk, Risk | None]]
    parameters: dict[str, dict[str, Any]]
    confidential: ClassVar[bool] = True

    def __getitem__(self, name: str) -> tuple[Risk, Risk | None]:
        return self.risks[find_attack(name).name]

    def lines(self) -> list[str]:
        """Return a table as text, and notes on it."""
        head = ["adversary", "mean risk", "highest", "re-identified", f"above 1/{self.k:,}", "random knowledge", ""]
        rows = [
            [find_attack(name).title, *_columns(sides, self.k), _remark(sides)] for name, sides in self.risks.items()
        ]
        return [*align_rows([head, *rows], remarks=True), "", *self._notes()]

    def _notes(self) -> list[str]:
        before, after = next(iter(self.risks.values()))
        who = counted(len(before.tried), "person" if before.units == "people" else "trajectory",
                      "people" if before.units == "people" else "trajectories")  # fmt: skip
        of = f" of {before.of:,}, drawn at random" if len(before.tried) < before.of else ""
        notes = [f"{who}{of}: the risk of each is that of the most revealing background knowledge."]
        if after is not None:
            notes.append("Before → after: in the original, and in the release.")
            if not after.paired:
                text = Text(
                    "No pairing was given ({pairing}), so risks after count every matching trajectory as found."
                )
                notes.append(render(text, as_command_line))
        if any(not side.average.exact for sides in self.risks.values() for side in sides if side is not None):
            notes.append("Random knowledge: an estimate; its 95 % confidence interval is in the JSON.")
        return notes

    def as_json(self) -> dict[str, Any]:
        """Return all results except those of individuals."""
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
        """Return a row for each attack and attacked individual, by the id in the input."""
        columns: dict[str, list[Any]] = {"attack": [], "id": [], "risk_before": [], "risk_after": []}
        for name, (before, after) in self.risks.items():
            ids = self.data.people_ids if before.units == "people" else self.data.ids
            columns["attack"] += [name] * len(before.tried)
            columns["id"] += [str(ids[i]) for i in _individuals(self.data, before).tolist()]
            columns["risk_before"] += before.risk.tolist()
            columns["risk_after"] += [None] * len(before.tried) if after is None else after.risk.tolist()
        return pa.table({**columns, "risk_after": pa.array(columns["risk_after"], pa.float64())})

    to_arrow = table

    def write(self, path: Path) -> None:
        """Write results in the format of the suffix: .json without individuals, .csv or .parquet with them."""
        write_json_or_table(self.as_json, self.table, path)


@dataclass(frozen=True, eq=False, repr=False)
class ExposureResults(Tabular):
    """Results of attacks on a release of flows. `results["homogeneity"]` has that of one attack."""

    k: int
    exposures: tuple[Exposure, ...]

    @property
    def confidential(self) -> bool:
        """Return whether numbers come from the original."""
        return any(found.name in (RECOVERY, "dominance") for found in self.exposures)

    def __getitem__(self, name: str) -> Exposure:
        return {found.name: found for found in self.exposures}[find_attack(name).name]

    def lines(self) -> list[str]:
        """Return the result of each attack as text, with its numbers."""
        lines = []
        for found in self.exposures:
            verdict = f"finds groups of fewer than {self.k:,}" if found.below_k else f"finds no group below {self.k:,}"
            lines += [
                f"{found.title}: {'reported, not guaranteed' if found.name in REPORTED else verdict}",
                f"  {found.explanation}",
            ]
            lines += [f"  {name.replace('_', ' '):44}{_shown(value)}" for name, value in found.values.items()]
        return lines

    def as_json(self) -> dict[str, Any]:
        """Return all results by the name of the attack."""
        return {
            "k": self.k,
            "attacks": {
                found.name: {
                    "title": found.title,
                    "values": dict(found.values),
                    "worst": found.worst,
                    "below_k": found.below_k,
                    "explanation": found.explanation,
                }
                for found in self.exposures
            },
        }

    def table(self) -> pa.Table:
        """Return a row for each number."""
        rows = [
            {"attack": found.name, "value": name, "number": None if number is None else float(number)}
            for found in self.exposures
            for name, number in found.values.items()
        ]
        columns = (("attack", pa.string()), ("value", pa.string()), ("number", pa.float64()))
        return pa.Table.from_pylist(rows, pa.schema(columns))

    to_arrow = table

    def write(self, path: Path) -> None:
        """Write results in the format of the suffix: .json, .csv or .parquet."""
        write_json_or_table(self.as_json, self.table, path)


def named_attacks(name: str, takes: type) -> list[Attack]:
    """Return one attack by name, or all attacks on data of type `takes`."""
    if name != ALL:
        return [find_attack(name)]
    return [attack for attack in map(find_attack, ATTACKS) if attack.takes is takes]


def attack_params(attacks: Sequence[Attack], name: str, values: dict[str, Any]) -> list[Params]:
    """Return the parameters of each attack; for all attacks, each takes its own from the shared values."""
    if name != ALL or not issubclass(attacks[0].params, AdversaryParams):
        return [attack.params.checked(values) for attack in attacks]
    shared = AllAttackParams.checked(values)
    return [attack.params(**{n: getattr(shared, n) for n in attack.params.model_fields}) for attack in attacks]


def attack_trajectories(
    data: Trajectories,
    release: TrajectoryRelease | None,
    attacks: Sequence[Attack],
    params: Sequence[Any],
    k: int | None,
    progress: Progress,
) -> AttackResults:
    """Attack trajectories, and a release of them if given."""
    if len(data) == 0:
        raise InputError("input", "Expected at least one trajectory, got none.")
    scene = AttackScenario(data, release, _units(params[0].units, data, release), data.k_unit)
    risks = {}
    for attack, chosen in zip(attacks, params, strict=True):
        before = attack.run(scene.on_original(), chosen, progress)
        after = None if release is None else attack.run(scene, chosen, progress)
        risks[attack.name] = before, after
    parameters = {a.name: p.model_dump(mode="json") for a, p in zip(attacks, params, strict=True)}
    return AttackResults(data, params[0].k or k or DEFAULT_K, risks, parameters)


def attack_flow_release(
    published: Published | PublishedReleases | AggregatedTrajectories | Groups,
    attacks: Sequence[Attack],
    params: Sequence[Any],
) -> ExposureResults:
    """Attack a release of flows, or several."""
    exposures = tuple(attack.run(published, chosen) for attack, chosen in zip(attacks, params, strict=True))
    return ExposureResults(published.threshold(params[0]), exposures)


def _units(requested: str, data: Trajectories, release: TrajectoryRelease | None) -> Units:
    """Return the unit of an attack, people or trajectories, as requested or as known."""
    if requested == "people" and data.k_unit != "people":
        raise ParameterError(
            Option("units"), Text("people are not known. Name their column with {user}, or omit units.")
        )
    known = data.k_unit == "people" and (release is None or release.person is not None)
    return "people" if requested == "people" or (requested == "auto" and known) else "trajectories"


def _individuals(data: Trajectories, risk: Risk) -> Any:
    """Return the attacked people or trajectories; people without a trajectory are not attacked."""
    return np.unique(data.person)[risk.tried] if risk.units == "people" else risk.tried


def _columns(sides: tuple[Risk, Risk | None], k: int) -> list[str]:
    before, after = sides
    percents = [_percents(before, k)] if after is None else [_percents(before, k), _percents(after, k)]
    return [" → ".join(values) for values in zip(*percents, strict=True)]


def _percents(risk: Risk, k: int) -> list[str]:
    numbers = (risk.mean.value, risk.highest, risk.unique.value, risk.above(k).value, risk.average.value)
    return [f"{100 * number:.1f} %" for number in numbers]


def _remark(sides: tuple[Risk, Risk | None]) -> str:
    exact = all(side is None or side.exact for side in sides)
    return "" if exact else "lower bound: not all background knowledge was tried"


def _as_json(risk: Risk, k: int) -> dict[str, Any]:
    return {
        "individuals": risk.of,
        "tried": len(risk.tried),
        "exact": risk.exact,
        "paired": risk.paired,
        "mean": _interval(risk.mean),
        "highest": risk.highest,
        "re_identified": _interval(risk.unique),
        "above_1_over_k": _interval(risk.above(k)),
        "random_knowledge": _interval(risk.average),
    }


def _interval(found: Interval) -> dict[str, Any]:
    return {"value": found.value, "low": found.low, "high": found.high, "exact": found.exact}


def _shown(value: float | int | None) -> str:
    return "–" if value is None else f"{value:,}"
