"""Attack every release before it is published: measure risks before and after, and compare them with the guarantees.

The adversary of each guarantee
-------------------------------
TrajectoryKAnonymity(k): any. Whatever the background knowledge, it matches a union of equivalence classes, so that no person is
re-identified with a probability above 1/k.

CombinationKAnonymity(k, knowledge): up to `knowledge` known visits, in order or not, with times no finer than guaranteed.
Consecutive rows with one location and one such time are one visit: their number is not part of the guarantee.

FlowKAnonymity(k): reads rows and totals, and adds rows; with TrueVolumes also subtracts them.

Only these adversaries can violate a guarantee. The run fails if one of them succeeds more often than a proven guarantee allows.
All other adversaries are measured and reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from crowdveil import guarantees as library
from crowdveil.attacks.adversary_view import AdversaryView, AttackScenario, LocationHistories, Units, numbered
from crowdveil.attacks.background_knowledge import LOCATION, SEQUENCE, TIME
from crowdveil.attacks.base import Attack, FlowAttackParams, KnowledgeParams, Risk, TimeParams
from crowdveil.attacks.dominance import OF_CLASSES, OF_ROWS, Groups
from crowdveil.attacks.known_points import FEWEST
from crowdveil.attacks.od import differencing, homogeneity
from crowdveil.attacks.od.published import MINIMUM_GROUP_SIZE, SINGLETON_MARGINS, Published
from crowdveil.attacks.search import MatchRule, search_risk
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import GuaranteeViolatedError, counted
from crowdveil.guarantees import Guarantee
from crowdveil.io.manifest import Trial
from crowdveil.model.arrays import Ints
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories

TrajectoryGoal = library.TrajectoryKAnonymity | library.CombinationKAnonymity

TRIED, MIN_TRIED, WORK, MAX_POINTS = 200, 25, 50_000_000, 5_000_000
"""Trajectories attacked, drawn at random: enough to detect a method that does not work, in about a second. Among many points an
attack takes longer: then fewer are attacked, and none among more than a few million."""
CHOICES, SAMPLES = 20_000, 100
DOMINANCE = "dominance"
_OF_CLASSES = (library.TrajectoryKAnonymity, library.SegmentKAnonymity)
"""Guarantees of equivalence classes."""
TILE_M, KNOWN, OF_THE_RELEASE = 500.0, 2, 4
"""Tiles of the known locations of a person, and their number; and the number of known exact points of the release itself."""


@dataclass(frozen=True)
class RiskEstimate:
    """The risk by one attack on a release.

    Attributes
    ----------
    attack
        Its name.
    knowledge
        The background knowledge, in words; "" where the release is all.
    before, after
        Mean risk by the worst combination of background knowledge, in the original and in the release, or the exposed share;
        whole percents, None where it was not measured.
    guarantee
        The name of the guarantee against this adversary, None if there is none.
    k
        The group size that it guarantees.
    worst
        The smallest group found, None where there was none.
    succeeded
        Whether that is below the guaranteed group size.
    proven
        Whether the method's guarantee is proven, so that a success fails the run.
    known, trips
        Trips with known destination, and all trips, for merging partitions; None where the risk is not their share.
    known_before, all_before
        The same of the original: trips with known destination, or flows below k; None where it was not measured.
    """

    attack: str
    knowledge: str
    after: int | None
    before: int | None = None
    guarantee: str | None = None
    k: int | None = None
    worst: int | None = None
    succeeded: bool = False
    proven: bool = False
    known: int | None = None
    trips: int | None = None
    known_before: int | None = None
    all_before: int | None = None

    @property
    def stops(self) -> bool:
        """Return whether nothing may be published."""
        return self.succeeded and self.proven and self.guarantee is not None

    def as_trial(self) -> Trial:
        """Return the entry of the manifest: whole percents without group sizes, which may reveal a person."""
        return Trial(
            attack=self.attack,
            knowledge=self.knowledge or None,
            risk_percent_before=self.before,
            risk_percent=self.after,
            guarantee=self.guarantee,
        )

    def line(self) -> str:
        """Return the risk in a line for the terminal."""
        before = "" if self.before is None else f" (in the original {self.before} %)"
        return (
            f"re-identified by {self.attack}{f', {self.knowledge}' if self.knowledge else ''}  {self.after} %{before}"
        )


def attack_release(
    data: Trajectories | Flows,
    release: Release,
    guarantees: Sequence[Guarantee],
    status: str,
    seed: int = 0,
    progress: Progress = no_progress,
) -> list[RiskEstimate]:
    """Attack a new release, and return the risks; `require_withstood` decides whether it may be published.

    Parameters
    ----------
    guarantees
        The guarantees of the release, also of its structure.
    status
        The status of the method's guarantee; a success fails the run where it is "proven".
    seed
        Seed of the random choices.
    """
    proven = status == "proven"
    if isinstance(release, FlowRelease):
        return _on_flows(data, release, guarantees, proven)
    if isinstance(data, Trajectories) and len(data) and len(release) and data.points <= MAX_POINTS:
        return _on_trajectories(data, release, guarantees, proven, seed, progress)
    return []


def require_withstood(trials: Sequence[RiskEstimate]) -> None:
    """Raise if an adversary succeeds against a proven guarantee."""
    for trial in trials:
        if trial.stops:
            known = trial.knowledge or "the release"
            raise GuaranteeViolatedError(
                f"the guarantee {trial.guarantee} fails against an adversary ({trial.attack}, {known}), who finds a group of "
                f"{trial.worst or 0:,} instead of {trial.k:,}, so nothing was published."
            )


def merge_risk_estimates(parts: Sequence[Sequence[RiskEstimate]]) -> list[RiskEstimate]:
    """Merge the risks of partitions of whole time steps of a release of flows.

    Adversaries of flows use one step at a time, or add steps, which only increases totals.
    """
    merged = []
    for of_parts in zip(*parts, strict=True):
        first = of_parts[0]
        if first.guarantee is None:
            known, trips = sum(t.known or 0 for t in of_parts), sum(t.trips or 0 for t in of_parts)
            share = _known_share(first.attack, known, trips, first.knowledge)
            merged.append(_with_before(share, _sum_before(of_parts), first.k))
            continue
        worst = min((t.worst for t in of_parts if t.worst is not None), default=None)
        succeeded = any(t.succeeded for t in of_parts)
        after = replace(first, after=100 if succeeded else 0, worst=worst, succeeded=succeeded)
        merged.append(_with_before(after, _sum_before(of_parts), first.k))
    return merged


def _sum_before(parts: Sequence[RiskEstimate]) -> tuple[int, int] | None:
    if parts[0].all_before is None:
        return None
    return sum(part.known_before or 0 for part in parts), sum(part.all_before or 0 for part in parts)


def _with_before(estimate: RiskEstimate, counts: tuple[int, int] | None, k: int | None) -> RiskEstimate:
    """Return the risk with that of the original, in whole percents; not where one percent would be fewer than k."""
    if counts is None or k is None:
        return estimate
    known, every = counts
    before = round(Fraction(100 * known, every)) if every >= 100 * k else None
    return replace(estimate, before=before, k=k, known_before=known, all_before=every)


def _on_flows(
    data: Trajectories | Flows, release: FlowRelease, guarantees: Sequence[Guarantee], proven: bool
) -> list[RiskEstimate]:  # fmt: skip
    goal = next((p for p in guarantees if isinstance(p, library.FlowKAnonymity)), None)
    exact = any(isinstance(p, library.TrueVolumes) for p in guarantees)
    published = Published(release, None if goal is None else goal.k, "exact" if exact else "overlapping")
    trips, to_area, to_tile = homogeneity.known_destinations(published).trips
    trials = [_known_share(homogeneity.AREA, to_area, trips), _known_share(homogeneity.TILE, to_tile, trips)]
    if goal is None:
        return trials
    if isinstance(data, Flows):
        # The zones of the original are its tiles, so that a known area is a known tile.
        known = homogeneity.known_destinations_of_original(data)
        trials = [_with_before(trial, known, goal.k) for trial in trials]
    if isinstance(data, Flows) and data.k_unit == "people" and data.weight is None:
        trials.append(_known_share(DOMINANCE, *Groups.of_rows(release).totals, OF_ROWS))
    attacks = [MINIMUM_GROUP_SIZE, SINGLETON_MARGINS]
    if exact and not any(isinstance(p, library.DisjointFlows) for p in guarantees):
        attacks.append(differencing.ATTACK)  # where rows do not overlap, as is checked, there is nothing to subtract
    for attack in attacks:
        exposure = attack.run(published, FlowAttackParams())
        estimate = RiskEstimate(
            attack.name, "", 100 if exposure.below_k else 0, guarantee=goal.name, k=goal.k, worst=exposure.worst,
            succeeded=exposure.below_k, proven=proven,
        )  # fmt: skip
        if attack is MINIMUM_GROUP_SIZE and isinstance(data, Flows):
            estimate = _with_before(estimate, (int((data.people < goal.k).sum()), len(data)), goal.k)
        trials.append(estimate)
    return trials


def _known_share(
    attack: str, known: int, trips: int, knowledge: str = "the origin area and the time step"
) -> RiskEstimate:
    # A fraction: a share of x.5 percent must be rounded alike however the trips are partitioned.
    after = round(Fraction(100 * known, trips)) if trips else None
    return RiskEstimate(attack, knowledge, after, known=known, trips=trips)


def _on_trajectories(
    data: Trajectories,
    release: TrajectoryRelease,
    guarantees: Sequence[Guarantee],
    proven: bool,
    seed: int,
    progress: Progress,
) -> list[RiskEstimate]:
    goal = next((p for p in guarantees if isinstance(p, TrajectoryGoal)), None)
    k_unit: Units = "people" if goal is None else goal.k_unit
    known = goal.knowledge if isinstance(goal, library.CombinationKAnonymity) else KNOWN
    seen = _merge_visits(release, goal) if isinstance(goal, library.CombinationKAnonymity) else release
    adversaries: list[tuple[Attack, bool]] = [(LOCATION, True), (SEQUENCE, True)]
    adversaries.append((TIME, not isinstance(goal, library.CombinationKAnonymity) or goal.interval_s is None))
    scenario = AttackScenario(data, seen, "trajectories", k_unit)
    trials: list[RiskEstimate] = []
    if data.k_unit == "people" and any(isinstance(p, _OF_CLASSES) for p in guarantees):
        largest, every = Groups.of_classes(data, release).totals
        # In whole percents, which reveal no single trajectory where there are many.
        if every >= FEWEST:
            trials.append(_known_share(DOMINANCE, largest, every, OF_CLASSES))
    tried = max(MIN_TRIED, min(TRIED, WORK // data.points))
    for number, (attack, is_covered) in enumerate(adversaries):
        progress(number, len(adversaries) + 1)
        parameters = {"tile_m": TILE_M, "knowledge": known, "people": tried, "seed": seed,
                      "max_combinations": CHOICES, "samples": SAMPLES}  # fmt: skip
        params, before, after = _before_and_after(attack, scenario, parameters)
        when = f" and {params.time_precision}s" if isinstance(params, TimeParams) else ""
        words = f"{counted(known, 'location')} by {params.tile_m:.0f} m{when}"
        within = goal if is_covered and after.paired else None
        trials.append(_trial(attack.name, words, after, before, within, proven))
    if goal is not None:
        trials.append(_attack_release_itself(data, seen, goal, k_unit, proven, seed, tried))
    progress(len(adversaries) + 1, len(adversaries) + 1)
    return trials


def _before_and_after(attack: Attack, scenario: AttackScenario, values: dict[str, Any]) -> tuple[Any, Risk, Risk]:
    """Return the parameters, and the risks in the original and in the release."""
    params = attack.params.checked(values)
    after = attack.run(scenario, params, no_progress)
    return params, attack.run(scenario.on_original(), params, no_progress), after


def _trial(
    name: str, words: str, after: Risk, before: Risk | None, goal: TrajectoryGoal | None, proven: bool
) -> RiskEstimate:
    worst = min(after.group_size[after.group_size > 0].tolist(), default=None)
    of_original = None if before is None else round(100 * before.mean.value)
    found = RiskEstimate(name, words, round(100 * after.mean.value), of_original, worst=worst, proven=proven)
    if goal is None:
        return found
    return replace(found, guarantee=goal.name, k=goal.k, succeeded=worst is not None and worst < goal.k)


def _attack_release_itself(
    data: Trajectories, release: TrajectoryRelease, goal: TrajectoryGoal, k_unit: Units, proven: bool, seed: int, tried: int
) -> RiskEstimate:  # fmt: skip
    """Attack with exact points of a published trajectory, as many as the guarantee covers, in their order."""
    known = goal.knowledge if isinstance(goal, library.CombinationKAnonymity) else OF_THE_RELEASE
    params = KnowledgeParams(
        knowledge=known, people=tried, seed=seed, max_combinations=CHOICES, samples=SAMPLES, units="trajectories"
    )
    view = _published_view(data, release, goal, k_unit)
    risk = search_risk("trajectories", view, params, MatchRule("in-order"), no_progress)
    return _trial("sequence", f"{counted(known, 'point')} of the release", risk, None, goal, proven)


def _published_view(
    data: Trajectories, release: TrajectoryRelease, goal: TrajectoryGoal, k_unit: Units
) -> AdversaryView:
    """Return the view of published trajectories as precisely as they may be known: with times as finely as guaranteed."""
    interval = goal.interval_s if isinstance(goal, library.CombinationKAnonymity) else None
    whose = np.arange(len(data)) if k_unit == "trajectories" else data.person
    label = np.arange(len(release)) if release.source is None else whose[release.source]
    location = numbered(release.lat, release.lon, _moments(release.t, interval))
    histories = LocationHistories(location, release.offsets, label, int(location.max(initial=-1)) + 1)
    return AdversaryView(histories, histories)


def _merge_visits(release: TrajectoryRelease, goal: library.CombinationKAnonymity) -> TrajectoryRelease:
    """Merge consecutive rows at one location and one time, as finely as it may be known."""
    first = np.zeros(release.points, np.bool_)
    for column in (release.lat, release.lon, _moments(release.t, goal.interval_s)):
        first[1:] |= column[1:] != column[:-1]
    first[release.offsets[:-1][np.diff(release.offsets) > 0]] = True
    kept = np.concatenate([np.zeros(1, np.int64), np.cumsum(first)])
    lon, lat, t = release.lon[first], release.lat[first], release.t[first]
    return replace(release, lon=lon, lat=lat, t=t, offsets=kept[release.offsets], point=None)


def _moments(t: Ints, interval_s: int | None) -> Ints:
    """Return times as finely as they may be known: unchanged (None), in whole intervals, or not at all (0)."""
    if interval_s is None:
        return t
    return t // interval_s if interval_s else np.zeros(len(t), np.int64)
