"""Every run is attacked before it is published: risks before and after, and whether an adversary beats what was guaranteed.

Which adversary a guarantee speaks of
-----------------------------------
TrajectoryKAnonymity(k): all. Whatever is known, who matches it is a union of groups of equal trajectories, so that nobody in it
is found with a probability above 1/k.

CombinationKAnonymity(k, knowledge): who knows up to `knowledge` visits, in order or not, with times no finer than the guarantee
says. Rows that follow one another with one place and one such time are one visit: how many they are is more than is guaranteed.

FlowKAnonymity(k): who reads rows, adds them up and reads totals; with TrueVolumes also who subtracts them.

Only these can break a guarantee, and of a method whose guarantee is proven they stop the run. All others are measured and told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil import engine
from crowdveil.attacks.adversary_view import AdversaryView, AttackScenario, LocationHistories, Units, numbered
from crowdveil.attacks.base import Attack, FlowAttackParams, KnowledgeParams, Risk, TimeParams
from crowdveil.attacks.od import differencing, homogeneity, minimum_crowd, singleton_margins
from crowdveil.attacks.od.published import Published
from crowdveil.attacks.search import MatchRule, searched
from crowdveil.attacks.trajectory import location, sequence, time
from crowdveil.errors import GuaranteeViolatedError, counted
from crowdveil.guarantees import (
    CombinationKAnonymity,
    DisjointFlows,
    FlowKAnonymity,
    Guarantee,
    TrajectoryKAnonymity,
    TrueVolumes,
)
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.progress import Progress, no_progress

TRIED, LEAST, WORK, MOST_POINTS = 200, 25, 50_000_000, 5_000_000
"""Trajectories that are tried, drawn at random: enough to see a method that does not work, and done in a second or so. Among many
points a trial takes longer, so that fewer are made, and none among more than a few million."""
CHOICES, SAMPLES = 20_000, 100
TILE_M, KNOWN, OF_THE_RELEASE = 500.0, 2, 4
"""Tiles that somebody's places are known by, and how many of them; and how many exact points of the release itself."""


@dataclass(frozen=True)
class RiskEstimate:
    """What came of one attack on a run.

    Attributes
    ----------
    attack
        Its name.
    knowledge
        What is known, in words; "" where the release is all.
    before, after
        Mean risk by the worst choice of what is known, in the original and in the release, or the share that is exposed; whole
        percents, None where it was not looked at.
    within
        The name of the guarantee that speaks of this adversary, None if none does.
    k
        The crowd that it guarantees.
    worst
        The smallest crowd that was found, None where there was none.
    beaten
        Whether that is less than was guaranteed.
    proven
        Whether the method's guarantee is proven, so that this adversary stops the run.
    share
        The risk in the release before it was rounded, in per cent, where parts of a release are to be put together.
    """

    attack: str
    knowledge: str
    after: int | None
    before: int | None = None
    within: str | None = None
    k: int | None = None
    worst: int | None = None
    beaten: bool = False
    proven: bool = False
    share: float | None = None

    @property
    def stops(self) -> bool:
        """Whether nothing may be published."""
        return self.beaten and self.proven and self.within is not None

    def as_json(self) -> dict[str, Any]:
        """For the manifest: whole percents and no crowd, which may be somebody."""
        return {
            "attack": self.attack,
            "knowledge": self.knowledge or None,
            "risk_percent_before": self.before,
            "risk_percent": self.after,
            "guarantee": self.within,
        }

    def line(self) -> str:
        """For whoever ran it."""
        before = "" if self.before is None else f" (in the original {self.before} %)"
        return f"found by {self.attack}{f', {self.knowledge}' if self.knowledge else ''}  {self.after} %{before}"


def against_guarantees(
    data: Trajectories | Flows,
    release: Release,
    guarantees: Sequence[Guarantee],
    status: str,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[RiskEstimate]:
    """Attack a release that was just made, and say what came of it; `refuse_beaten` says whether it may be published.

    Parameters
    ----------
    guarantees
        Those of the release, of its form too.
    status
        How sure the method's guarantee is; adversaries stop the run where it is "proven".
    seed
        Of the trajectories that are tried.
    """
    proven = status == "proven"
    # Not on an engine that keeps finished work: this is done anew each time.
    with engine.use(engine.LocalEngine()):
        if isinstance(release, FlowRelease):
            return _on_flows(release, guarantees, proven)
        if isinstance(data, Trajectories) and len(data) and len(release) and data.points <= MOST_POINTS:
            return _on_trajectories(data, release, guarantees, proven, seed, progress)
    return []


def refuse_beaten(trials: Sequence[RiskEstimate]) -> None:
    """Raise if an adversary beats a guarantee that is proven."""
    for trial in trials:
        if trial.stops:
            known = trial.knowledge or "the release"
            raise GuaranteeViolatedError(
                f"the guarantee {trial.within} fails against an adversary ({trial.attack}, {known}), who finds a crowd of "
                f"{trial.worst or 0:,} in place of {trial.k:,}, so nothing was published."
            )


def trials_of_parts(parts: Sequence[tuple[Sequence[RiskEstimate], int]]) -> list[RiskEstimate]:
    """What came of attacks on a release of flows, from its parts of whole time steps; each with its published volume.

    Adversaries of flows look at one step at a time, or add up over steps, which makes totals only larger.
    """
    together = []
    for of_parts in zip(*(trials for trials, _ in parts), strict=True):
        first, weighed = of_parts[0], [(t, volume) for t, (_, volume) in zip(of_parts, parts, strict=True)]
        worst, beaten = (
            min((t.worst for t in of_parts if t.worst is not None), default=None),
            any(t.beaten for t in of_parts),
        )
        after: int | None = 100 if beaten else 0
        if first.within is None:
            known = [(t.share, volume) for t, volume in weighed if t.share is not None]
            volume = sum(v for _, v in known)
            after = round(sum(share * v for share, v in known) / volume) if volume else None
        together.append(replace(first, after=after, worst=worst, beaten=beaten, share=None))
    return together


def _on_flows(release: FlowRelease, guarantees: Sequence[Guarantee], proven: bool) -> list[RiskEstimate]:
    crowd = next((p for p in guarantees if isinstance(p, FlowKAnonymity)), None)
    exact = any(isinstance(p, TrueVolumes) for p in guarantees)
    published = Published(release, None if crowd is None else crowd.k, "exact" if exact else "overlapping")
    found = homogeneity.run(published, FlowAttackParams())
    trials = []
    for name, unit in ((homogeneity.AREA, "area"), (homogeneity.TILE, "tile")):
        known = found.values[f"trips_with_destination_{unit}_known_percent"]
        trials.append(RiskEstimate(name, "the origin area and the time step", _whole(known), share=known))
    if crowd is None:
        return trials
    attacks = [minimum_crowd, singleton_margins]
    if exact and not any(isinstance(p, DisjointFlows) for p in guarantees):
        attacks.append(differencing)  # where rows do not overlap, as is checked, there is nothing to subtract
    for attack in attacks:
        exposure = attack.run(published, FlowAttackParams())
        trials.append(
            RiskEstimate(
                attack.ATTACK.name, "", 100 if exposure.beats_k else 0, within=crowd.name, k=crowd.k, worst=exposure.worst,
                beaten=exposure.beats_k, proven=proven,
            )
        )  # fmt: skip
    return trials


def _whole(percent: float | None) -> int | None:
    return None if percent is None else round(percent)


def _on_trajectories(
    data: Trajectories,
    release: TrajectoryRelease,
    guarantees: Sequence[Guarantee],
    proven: bool,
    seed: int,
    progress: Progress,
) -> list[RiskEstimate]:
    crowd = next((p for p in guarantees if isinstance(p, TrajectoryKAnonymity | CombinationKAnonymity)), None)
    counts: Units = "people" if crowd is None else crowd.counts
    known = crowd.knowledge if isinstance(crowd, CombinationKAnonymity) else KNOWN
    seen = _visits_alone(release, crowd) if isinstance(crowd, CombinationKAnonymity) else release
    adversaries: list[tuple[Attack, bool]] = [(location.ATTACK, True), (sequence.ATTACK, True)]
    adversaries.append((time.ATTACK, not isinstance(crowd, CombinationKAnonymity) or crowd.interval_s is None))
    scene, trials = AttackScenario(data, seen, "trajectories", counts), []
    tried = max(LEAST, min(TRIED, WORK // data.points))
    for number, (attack, spoken_of) in enumerate(adversaries):
        progress(number, len(adversaries) + 1)
        parameters = {"tile_m": TILE_M, "knowledge": known, "people": tried, "seed": seed,
                      "most_combinations": CHOICES, "samples": SAMPLES}  # fmt: skip
        params = attack.params.checked(parameters)
        before, after = attack.run(scene.before(), params, no_progress), attack.run(scene, params, no_progress)
        when = f" and {params.time_precision}s" if isinstance(params, TimeParams) else ""
        words = f"{counted(known, 'place')} by {TILE_M:.0f} m{when}"
        within = crowd if spoken_of and after.paired else None
        trials.append(_trial(attack.name, words, after, before, within, proven))
    if crowd is not None:
        trials.append(_on_itself(data, release, crowd, counts, proven, seed, tried))
    progress(len(adversaries) + 1, len(adversaries) + 1)
    return trials


def _trial(
    name: str, words: str, after: Risk, before: Risk | None,
    crowd: TrajectoryKAnonymity | CombinationKAnonymity | None, proven: bool,
) -> RiskEstimate:  # fmt: skip
    found = after.crowd[after.crowd > 0]
    worst = int(found.min()) if len(found) else None
    return RiskEstimate(
        name,
        words,
        round(100 * after.mean.value),
        None if before is None else round(100 * before.mean.value),
        None if crowd is None else crowd.name,
        None if crowd is None else crowd.k,
        worst,
        crowd is not None and worst is not None and worst < crowd.k,
        proven,
    )


def _on_itself(
    data: Trajectories, release: TrajectoryRelease, crowd: TrajectoryKAnonymity | CombinationKAnonymity, counts: Units,
    proven: bool, seed: int, tried: int,
) -> RiskEstimate:  # fmt: skip
    """Somebody who knows exact points of a published trajectory, as many as the guarantee says and in their order."""
    traces, known = _published_visits(data, release, crowd, counts), OF_THE_RELEASE
    if isinstance(crowd, CombinationKAnonymity):
        known = crowd.knowledge
    params = KnowledgeParams(
        knowledge=known, people=tried, seed=seed, most_combinations=CHOICES, samples=SAMPLES, units="trajectories"
    )
    risk = searched(
        AttackScenario(data, release, "trajectories", counts),
        AdversaryView(traces, traces),
        params,
        MatchRule("in-order"),
        no_progress,
    )
    return _trial("sequence", f"{counted(known, 'point')} of the release", risk, None, crowd, proven)


def _published_visits(
    data: Trajectories, release: TrajectoryRelease, crowd: TrajectoryKAnonymity | CombinationKAnonymity, counts: Units
) -> LocationHistories:
    """Published trajectories as what may be known of them: places and times as finely as is guaranteed."""
    seen = _visits_alone(release, crowd) if isinstance(crowd, CombinationKAnonymity) else release
    interval = crowd.interval_s if isinstance(crowd, CombinationKAnonymity) else None
    place = numbered(seen.lat, seen.lon, _moments(seen.t, interval))
    whose = np.arange(len(data)) if counts == "trajectories" else data.person
    label = np.arange(len(seen)) if seen.source is None else whose[seen.source]
    return LocationHistories(place, seen.offsets, label, int(place.max(initial=-1)) + 1)


def _visits_alone(release: TrajectoryRelease, crowd: CombinationKAnonymity) -> TrajectoryRelease:
    """One row of those that follow one another in one place and at one time, as finely as it may be known."""
    symbol = numbered(release.lat, release.lon, _moments(release.t, crowd.interval_s))
    first = np.diff(symbol, prepend=-1) != 0
    first[release.offsets[:-1][np.diff(release.offsets) > 0]] = True
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(first)])
    lon, lat, t = release.lon[first], release.lat[first], release.t[first]
    return replace(release, lon=lon, lat=lat, t=t, offsets=kept[release.offsets])


def _moments(t: Ints, interval_s: int | None) -> Ints:
    """Times as finely as they may be known: as they are (None), in whole intervals, or not at all (0)."""
    if interval_s is None:
        return t
    return t // interval_s if interval_s else np.zeros(len(t), np.int64)
