"""The table of attacks for readers: background knowledge, chance, risk before and after, and what the numbers mean.

Every number is from the manifest or counted in the published files.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crowdveil.attacks.dominance import OF_ROWS
from crowdveil.attacks.od.homogeneity import AREA, TILE
from crowdveil.errors import ParameterError
from crowdveil.io.manifest import Manifest, Trial
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.arrays import ranks, sorted_distinct
from crowdveil.registry import find_attack

RELEASE_ALONE = "the release alone"
_TITLES = {AREA: "destination area known", TILE: "destination tile known"}


COARSER = "It is more than in the original because areas are larger than zones, so fewer are left to choose from."
"""Why a figure looks worse in the release."""


@dataclass(frozen=True)
class AttackRow:
    """An attack as a row of text.

    Attributes
    ----------
    title, name
        What the attack tries to learn, and its name.
    knows
        Background knowledge.
    chance, before, after
        Success without that knowledge; with it, on the original and on the release.
    reading
        What the numbers mean, in a sentence or two.
    worse
        Whether the release looks worse than the original.
    """

    title: str
    name: str
    knows: str
    chance: str
    before: str
    after: str
    reading: str
    worse: bool = False

    @property
    def sentence(self) -> str:
        """The row in words, for the first page."""
        compared = [] if self.before == "–" else [f"in the original {self.before}"]
        compared += [] if self.chance == "–" else [f"by chance {self.chance}"]
        more = f" ({'; '.join(compared)})" if compared else ""
        if self.name in _TITLES:
            unit = "area" if self.name == AREA else "tile"
            certain = f"With {self.knows} known, the destination {unit} is certain for {self.after} of the trips{more}."
            return f"{certain}{f' {COARSER}' * self.worse}"
        if self.name in _READINGS:
            return self.reading
        return f"With {self.knows} known, the right person is found with a probability of {self.after}{more}."


def attack_rows(written: WrittenRelease, manifest: Manifest) -> list[AttackRow]:
    """Return a row for each attack of the manifest."""
    return [_row(written, manifest, trial) for trial in manifest.risk or ()]


def _row(written: WrittenRelease, manifest: Manifest, trial: Trial) -> AttackRow:
    name = str(trial.attack)
    before, after = trial.risk_percent_before, trial.risk_percent
    worse = name in _TITLES and before is not None and (after or 0) > before
    reading = "Not measured." if after is None else _READINGS.get(name, _of_trajectories)(manifest, trial)
    return AttackRow(
        _title(name), name, _knowledge(name, trial.knowledge), _chance(written, name), percent(before), percent(after),
        f"{reading} {COARSER}" if worse else reading, worse,
    )  # fmt: skip


def _title(name: str) -> str:
    if name in _TITLES:
        return _TITLES[name]
    try:
        return find_attack(name).title
    except ParameterError:
        return name


def _knowledge(name: str, text: str | None) -> str:
    """Return the background knowledge in words that distinguish the attacks: "2 locations (to 500 m) in their order"."""
    if not text:
        return RELEASE_ALONE
    phrase = re.sub(
        r" by ([\d.,]+ m)(?: and (hours|times))?", lambda m: f" (to {m[1]}){f' and their {m[2]}' * bool(m[2])}", text
    )
    return f"{phrase} in their order" if name == "sequence" else phrase


def _chance(written: WrittenRelease, name: str) -> str:
    """Return the success of an adversary who guesses without background knowledge."""
    if name in _TITLES:
        return percent(_guessed_destination(written, tiles_only=name == TILE))
    if written.is_flows or not len(written.data) or name == "dominance":
        return "–"
    return percent(100 / max(len(sorted_distinct(written.column("published_id"))), 1))


def _guessed_destination(written: WrittenRelease, *, tiles_only: bool) -> float | None:
    """Return the percents of trips that go to the destination area with most trips of their time step or interval."""
    volume = np.maximum(written.column("volume"), 0)
    if not volume.sum():
        return None
    *_, step = written.row_spans()
    destination, areas = written.area_numbers("destination_area"), max(len(written.features), 1)
    sizes = written.area_sizes
    counted = volume if not tiles_only else np.where(sizes[destination] == 1, volume, 0)
    pair, pairs = ranks(step * areas + destination)
    trips, most = np.bincount(pair, counted, pairs), np.zeros(int(step.max()) + 1)
    step_of_pair = np.zeros(pairs, np.int64)
    step_of_pair[pair] = step
    np.maximum.at(most, step_of_pair, trips)
    return 100 * float(most.sum()) / float(volume.sum())


def _destination(manifest: Manifest, trial: Trial) -> str:
    where = "single area" if trial.attack == AREA else "single tile, the smallest unit of the map"
    return (
        f"For {percent(trial.risk_percent)} of the trips all published trips of the origin and time step go to a {where}: "
        "k hides who traveled, but not where to."
    )


def _small_groups(manifest: Manifest, trial: Trial) -> str:
    k, unit = manifest.k, manifest.k_unit
    exists = trial.risk_percent != 0
    lines = {
        "minimum-group-size": f"{'A' if exists else 'No'} published flow has fewer than {k} {unit}.",
        "singleton-margins": f"{'A' if exists else 'No'} sum over an origin or a destination has fewer than {k} {unit}.",
        "differencing": f"{'A' if exists else 'No'} difference of published flows has fewer than {k} {unit}.",
    }
    before = trial.risk_percent_before
    more = "" if before is None else f" In the original {percent(before)} of the flows have fewer."
    return lines[str(trial.attack)] + more


def _dominance(manifest: Manifest, trial: Trial) -> str:
    share = percent(trial.risk_percent)
    if trial.knowledge == OF_ROWS:
        return f"Of the trips of a row, one person made at most {share} on average; k counts each person once."
    return f"Of the trajectories of a group, {share} are of the person who has most of them; k counts each person once."


def _of_trajectories(manifest: Manifest, trial: Trial) -> str:
    after, k = trial.risk_percent, manifest.k
    sentence = f"The right person is found with a probability of {percent(after)} on average."
    if trial.guarantee is None or not isinstance(k, int) or k < 1:
        return f"{sentence} No guarantee limits it."
    return f"{sentence} The guarantee allows at most 1 in {k:,}, which is {percent(100 / k)}."


_READINGS: dict[str, Callable[[Manifest, Trial], str]] = {
    AREA: _destination,
    TILE: _destination,
    "minimum-group-size": _small_groups,
    "singleton-margins": _small_groups,
    "differencing": _small_groups,
    "dominance": _dominance,
}


def percent(value: float | None) -> str:
    """Format percents in whole numbers; those near but not equal to 0 or 100 are shown as below 1 % and above 99 %."""
    if value is None:
        return "–"
    if 0 < value <= 0.5:  # a half is rounded to the even number, which is 0 or 100
        return "below 1 %"
    if 99.5 <= value < 100:
        return "above 99 %"
    return f"{value:.0f} %"
