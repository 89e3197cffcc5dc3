"""The worst and the average choice of what is known, for every adversary who knows a few places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from crowdveil import engine
from crowdveil.attacks.adversary_view import AdversaryView, AttackScenario, chosen_units
from crowdveil.attacks.base import Interval, KnowledgeParams, Risk, SightParams
from crowdveil.model.arrays import Floats, Ints, row_slices
from crowdveil.progress import Progress

CHUNK = 256
"""Individuals of a task, at most."""


@dataclass(frozen=True)
class MatchRule:
    """How known places are matched.

    Attributes
    ----------
    kind
        at-least: each place as often as it is known; within: with its value up to the tolerance; proportion: with values in
        the same proportions; in-order: one after the other.
    by
        Whether single records are known, or different places with how often they were visited, or with which share of all visits.
    """

    kind: Literal["at-least", "within", "proportion", "in-order"]
    by: Literal["records", "counts", "shares"] = "records"
    tolerance: float = 0.0


def searched(
    scene: AttackScenario, sight: AdversaryView, params: KnowledgeParams, way: MatchRule, progress: Progress
) -> Risk:
    """The risk of each individual by the worst choice of what is known, and that of random ones by random choices."""
    rng = np.random.default_rng(params.seed)
    tried = drawn(sight, params, rng)
    search = _search(sight, params, way)
    # Some of them now and then, so that one long task does not hold up the rest at the end.
    size = min(CHUNK, max(1, -(-len(tried) // 16)))
    parts = [tried[low : low + size] for low in range(0, len(tried), size)]
    found = engine.current().map(lambda i: search(parts[i]), len(parts), progress)
    crowd = np.concatenate([np.zeros(0, np.int64), *(f[0] for f in found)])
    exact = all(bool(f[1].all()) for f in found)
    average = _average(sight, params, way, rng)
    return Risk(scene.units, tried, len(sight.targets), crowd, exact, average, sight.paired)


def drawn(sight: AdversaryView, params: SightParams, rng: np.random.Generator) -> Ints:
    """The individuals that are tried, rising."""
    n = len(sight.targets)
    if params.people is None or params.people >= n:
        return np.arange(n)
    return np.sort(rng.permutation(n)[: params.people])


def _search(sight: AdversaryView, params: KnowledgeParams, way: MatchRule) -> Callable[[Ints], engine.Arrays]:
    """The search for the worst choice, as a task on some individuals."""
    index, label, labels = sight.candidates.index, sight.candidates.label, _labels(sight)
    wanted, h, most = sight.wanted, params.knowledge, params.most_combinations
    if way.kind == "in-order":
        from crowdveil.kernels.attacks.known_orders import smallest_crowds_in_order

        def follow(units: Ints) -> engine.Arrays:
            rows, offsets = chosen_units(sight.targets, units)
            return smallest_crowds_in_order(
                h, most, offsets, sight.targets.place[rows], wanted[units], index.place_offsets, index.unit, index.first,
                index.position, label, labels,
            )  # fmt: skip

        return follow

    offsets, place, value, of_candidates = _profiles(sight, way)

    def profile(units: Ints) -> tuple[Ints, Ints, Floats, Ints]:
        lengths = np.diff(offsets)[units]
        new = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        rows = np.arange(new[-1]) + np.repeat(offsets[units] - new[:-1], lengths)
        return new, place[rows], value[rows], wanted[units]

    if way.kind == "proportion":
        from crowdveil.kernels.attacks.known_shares import smallest_crowds_by_share

        # What is known of the original need not be in a release, and then less of it may lead to somebody.
        fewest = 1 if sight.released else h
        return lambda units: smallest_crowds_by_share(
            fewest,
            h,
            most,
            way.tolerance,
            *profile(units),
            index.place_offsets,
            index.unit,
            of_candidates,
            label,
            labels,
        )
    from crowdveil.kernels.attacks.known_places import smallest_crowds

    levels = 0 if way.kind == "within" else h if way.by == "records" else 1
    plain = len(np.unique(label)) == len(label)
    return lambda units: smallest_crowds(
        h,
        most,
        levels,
        way.tolerance,
        *profile(units),
        index.place_offsets,
        index.unit,
        of_candidates,
        label,
        labels,
        plain,
    )


def _labels(sight: AdversaryView) -> int:
    return max(sight.candidates.labels, sight.targets.labels)


def _profiles(sight: AdversaryView, way: MatchRule) -> tuple[Ints, Ints, Floats, Floats]:
    """The different places of targets with their values, and the values of candidates in the order of the index."""
    index = sight.candidates.index
    offsets, place, count = sight.targets.profiles
    if way.by != "shares":
        return offsets, place, count.astype(np.float64), index.count.astype(np.float64)
    return (
        offsets,
        place,
        sight.targets.share(row_slices(offsets), count),
        sight.candidates.share(index.unit, index.count),
    )


def _average(sight: AdversaryView, params: KnowledgeParams, way: MatchRule, rng: np.random.Generator) -> Interval:
    """The mean over individuals, and over all choices for each, of the probability of finding them."""
    if not len(sight.targets):
        return Interval.known(0.0)
    offsets, place, value, of_candidates = _profiles(sight, way)
    if way.by == "records":
        offsets, place, value = sight.targets.offsets, sight.targets.place, np.zeros(len(sight.targets.place))
    lengths = np.diff(offsets)
    known = np.minimum(lengths, params.knowledge)
    few = lengths if len(lengths) <= params.samples else lengths[:0]
    choices = [comb(n, m) for n, m in zip(few.tolist(), known.tolist(), strict=False)]
    exact = 0 < sum(choices) <= params.samples
    if exact:
        unit = np.repeat(np.arange(len(lengths)), choices)
        rows = [c for n, m in zip(lengths.tolist(), known.tolist(), strict=True) for c in combinations(range(n), m)]
    else:
        unit = rng.integers(0, len(lengths), params.samples)
        rows = _random_choices(lengths[unit], params.knowledge, rng)
    sizes = np.concatenate([np.zeros(1, np.int64), np.cumsum(known[unit])])
    picked = np.array([r for choice in rows for r in choice], np.int64) + np.repeat(offsets[:-1][unit], known[unit])
    risk = _risk_of_choices(sight, way, unit, sizes, place[picked], value[picked], of_candidates)
    if not exact:
        return Interval.of_sample(risk)
    weight = 1 / (np.array(choices, np.float64)[unit] * len(lengths))
    return Interval.known(float((risk * weight).sum()))


def _random_choices(lengths: Ints, knowledge: int, rng: np.random.Generator) -> list[list[int]]:
    """Different records of each of some individuals, rising, all choices as likely (Floyd's way, on all rows at once)."""
    known = np.minimum(lengths, knowledge)
    chosen = np.full((len(lengths), knowledge), -1, np.int64)
    for j in range(knowledge):
        top = lengths - known + j
        pick = rng.integers(0, np.maximum(top, 0) + 1)
        pick = np.where((chosen == pick[:, None]).any(axis=1), top, pick)
        chosen[:, j] = np.where(j < known, pick, np.iinfo(np.int64).max)
    chosen.sort(axis=1)
    return [row[:m].tolist() for row, m in zip(chosen, known.tolist(), strict=True)]


def _risk_of_choices(
    sight: AdversaryView, way: MatchRule, unit: Ints, sizes: Ints, place: Ints, value: Floats, of_candidates: Floats
) -> Floats:
    """The probability of finding somebody by each of some choices."""
    from crowdveil.kernels.attacks.known_shares import AT_LEAST, IN_ORDER, PROPORTION, WITHIN, crowds_of

    kind = {"at-least": AT_LEAST, "within": WITHIN, "proportion": PROPORTION, "in-order": IN_ORDER}[way.kind]
    index, label = sight.candidates.index, sight.candidates.label
    crowd = crowds_of(
        kind, way.tolerance, sizes, place, value, sight.wanted[unit], index.place_offsets, index.unit, of_candidates,
        index.first, index.position, label, _labels(sight),
    )  # fmt: skip
    risk: Floats = np.zeros(len(crowd))
    np.divide(1.0, crowd, out=risk, where=crowd > 0)
    return risk
