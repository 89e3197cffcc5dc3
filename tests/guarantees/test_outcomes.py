"""The three outcomes of every guarantee: for each a release that violates it, and which of them can end as not checked."""

from __future__ import annotations

import copy
import importlib
import json
import pkgutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_sectors import GOOD, feature, original
from written_flows import written

import crowdveil
from crowdveil import guarantees
from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import (
    GUARANTEES,
    BoundedVolumes,
    CombinationKAnonymity,
    DifferentialPrivacy,
    DisjointFlows,
    DisjointSectors,
    EveryLocationCounted,
    Finding,
    FlowKAnonymity,
    GeneralizationLimit,
    Guarantee,
    KDeltaAnonymity,
    LocationsOnTileCenters,
    MaxArea,
    MinTiles,
    NoOwnPoints,
    OriginalPoints,
    Outcome,
    PeriodBudget,
    SectorKAnonymity,
    SegmentKAnonymity,
    SharedTilePairs,
    SumsOfParent,
    SuppressedSegments,
    SuppressedTrajectories,
    SuppressionBudget,
    SwappedTrajectories,
    TrajectoryKAnonymity,
    TrueVolumes,
    WellFormedFlows,
    WellFormedSectors,
    WellFormedTrajectories,
)
from crowdveil.guarantees.base import FROM_FILES, require_checked, require_not_violated, tally
from crowdveil.guarantees.budget import within_budget
from crowdveil.io.sectors import WrittenSectors, read_sectors
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.flows import Flows, trips_within
from crowdveil.model.trajectories import Trajectories
from crowdveil.model.zones import Zones

ROW = [(0, "a", "b", 12, 12)]


def _flows(volume: int) -> Flows:
    """One flow from a to b."""
    one = np.array([0])
    return Flows.from_rows(Zones.from_ids(list("abc")), one, one, np.array([1]), np.array([volume]), step_s=3600)


def _walks(*walks: list[float], areas: bool = False) -> WrittenRelease:
    """Trajectories along the equator, a point a minute."""
    points = [(x, i, n + 1) for n, walk in enumerate(walks) for i, x in enumerate(walk)]
    table = {
        "lat": [0.0] * len(points), "lon": [p[0] for p in points], "published_id": [p[2] for p in points],
        "timestamp": pa.array([60_000 * p[1] for p in points], pa.timestamp("ms", tz="UTC")),
    }  # fmt: skip
    tile = {"properties": {"area": "a", "tiles": ["a"], "lon": 1.0, "lat": 0.0}}
    return WrittenRelease(Path("out"), pa.table(table), None, [tile] if areas else [])


def _people(*walks: list[float]) -> Trajectories:
    """The same as the original, each walk of another person."""
    x, n = np.array([x for walk in walks for x in walk]), len(walks)
    t = np.array([60 * i for walk in walks for i in range(len(walk))])
    names = np.array([str(i) for i in range(n)], dtype=object)
    ends = np.cumsum([0, *(len(walk) for walk in walks)])
    return Trajectories(x, np.zeros(len(x)), t, ends, np.arange(n), np.arange(n), names)


def _map(folder: Path, change: Callable[[dict[str, Any]], object]) -> WrittenSectors:
    content = copy.deepcopy(GOOD)
    change(content)
    (folder / "map.geojson").write_text(json.dumps(content))
    return read_sectors(folder / "map.geojson")


def _broken_map(guarantee: Any, change: Callable[[dict[str, Any]], object]) -> Callable[[Path], Finding]:
    return lambda folder: guarantee.check_sectors(_map(folder, change), original())


def _no_sum(folder: Path) -> Finding:
    """A derived release of which a row was left out."""
    table = pa.table({"origin": ["a", "b"], "destination": ["b", "a"], "volume": [12, 30]})
    crowdveil.anonymize(table, folder / "parent", method="suppression", attack=False, report=False)
    groups = pa.table({"zone": ["a", "b"], "group": ["a", "b"]})
    derived = crowdveil.derive(folder / "parent", folder / "derived", to_zones=groups, report=False)
    sums = next(g for g, _ in derived.verify() if isinstance(g, SumsOfParent))
    assert sums.check(derived.written).holds
    return sums.check(replace(derived.written, data=derived.written.data.slice(1)))


A, B = [1.0, 2.0, 3.0], [5.0, 6.0, 7.0]
VIOLATED: dict[type[Guarantee], Callable[[Path], Finding]] = {
    FlowKAnonymity: lambda _: FlowKAnonymity(k=13, k_unit="trips").check(written(ROW, k_unit="trips")),
    DisjointFlows: lambda _: DisjointFlows().check(written([*ROW, (0, "ab", "b", 12, 12)])),
    SumsOfParent: lambda folder: _no_sum(folder),
    DifferentialPrivacy: lambda _: DifferentialPrivacy(epsilon=1, trips=1).check(written(ROW)),
    SuppressionBudget: lambda _: SuppressionBudget(suppress=0.1, k=5).check_with_flows(written(ROW), _flows(14)),
    PeriodBudget: lambda _: PeriodBudget(suppress=0.1, k=5, period="all").check_with_flows(written(ROW), _flows(14)),
    GeneralizationLimit: lambda _: GeneralizationLimit(tiles=2).check(written([(0, "a", "ab", 12, 12)])),
    MinTiles: lambda _: MinTiles(tiles=2).check(written(ROW)),
    MaxArea: lambda _: MaxArea(km2=3).check(written([(0, "a", "ab", 12, 12)])),
    WellFormedFlows: lambda _: WellFormedFlows().check(written([(0, "a", "b", 0, 12)])),
    TrueVolumes: lambda _: TrueVolumes().check_with_flows(written(ROW, k_unit="trips"), _flows(13)),
    BoundedVolumes: lambda _: BoundedVolumes().check_with_flows(written(ROW, k_unit="trips"), _flows(11)),
    TrajectoryKAnonymity: lambda _: TrajectoryKAnonymity(k=2, k_unit="people").check_with_trajectories(
        _walks(A, A), _people(A), np.array([0, 0])
    ),
    SegmentKAnonymity: lambda _: SegmentKAnonymity(k=2, k_unit="people").check_with_trajectories(
        _walks(A, A), _people(A), np.array([0, 0])
    ),
    SuppressedTrajectories: lambda _: SuppressedTrajectories(suppress=0.5, k=2, k_unit="people").check_with_trajectories(
        _walks(A), _people(A, B), np.array([0])
    ),
    SuppressedSegments: lambda _: SuppressedSegments(
        suppress=0.5, k=2, k_unit="people", segment_s=60
    ).check_with_trajectories(_walks(A), _people(A, B), np.array([0])),
    CombinationKAnonymity: lambda _: CombinationKAnonymity(
        k=2, knowledge=1, interval_s=None, k_unit="people"
    ).check_with_trajectories(_walks(A, A), _people(A), np.array([0, 0])),
    OriginalPoints: lambda _: OriginalPoints().check_with_trajectories(_walks([9.0]), _people(A, B), None),
    SwappedTrajectories: lambda _: SwappedTrajectories(swaps=1, k_unit="people").check_with_trajectories(
        _walks(A), _people(A, B), None
    ),
    NoOwnPoints: lambda _: NoOwnPoints(k_unit="people").check_with_trajectories(_walks(A), _people(A, B), np.array([0])),
    SharedTilePairs: lambda _: SharedTilePairs(
        min_group_size=2, tile_size_m=500, lon0=0, lat0=0, k_unit="people"
    ).check(_walks(A)),
    KDeltaAnonymity: lambda _: KDeltaAnonymity(k=2, delta_m=500, k_unit="people").check_with_trajectories(
        _walks(A, A), _people(A), np.array([0, 0])
    ),
    LocationsOnTileCenters: lambda _: LocationsOnTileCenters().check(_walks(A, areas=True)),
    WellFormedTrajectories: lambda _: WellFormedTrajectories().check(
        replace(_walks(A), data=_walks(A).data.append_column("name", [["x", "y", "z"]]))
    ),
    SectorKAnonymity: _broken_map(
        SectorKAnonymity(k=2, k_unit="people"), lambda c: c["features"][0]["properties"].update(people=3)
    ),
    DisjointSectors: _broken_map(DisjointSectors(), lambda c: c["features"].append(feature(3, 90.0, 150.0, 3, 2))),
    EveryLocationCounted: _broken_map(EveryLocationCounted(k=2), lambda c: c["crowdveil"].update(suppressed_locations=9)),
    WellFormedSectors: _broken_map(WellFormedSectors(), lambda c: c["features"][0]["properties"].update(sector=4)),
}  # fmt: skip


def test_there_is_a_broken_release_for_every_guarantee() -> None:
    assert set(VIOLATED) == set(GUARANTEES)


@pytest.mark.parametrize("kind", GUARANTEES, ids=lambda kind: kind.name)
def test_what_is_violated_is_found(kind: type[Guarantee], tmp_path: Path) -> None:
    finding = VIOLATED[kind](tmp_path)
    assert finding.outcome is Outcome.VIOLATED and finding.detail.endswith(".") and sum(finding.counts.values())
    assert finding.counts.keys() == kind.tallies.keys()
    assert Finding.from_json(json.loads(json.dumps(finding.as_json()))) == finding


def test_which_guarantees_files_alone_leave_open(tmp_path: Path) -> None:
    """From files alone those that speak of the original or of people; with the original, noise."""
    flows = written([(0, "ab", "ab", 12, 12)], [(0, 12, None)], k_unit="trips")
    walks, sectors = _walks(A, A), _map(tmp_path, lambda _: None)
    of_flows: list[Guarantee] = [
        FlowKAnonymity(k=10, k_unit="trips"), DisjointFlows(), DifferentialPrivacy(epsilon=1, trips=1),
        SuppressionBudget(suppress=0.1, k=10), PeriodBudget(suppress=0.1, k=10, period="day"),
        GeneralizationLimit(tiles=4), MinTiles(tiles=2, of="visited"), MaxArea(km2=9),
        WellFormedFlows(), TrueVolumes(), BoundedVolumes(),
        SumsOfParent(parent="hours", sha256="0" * 64),
    ]  # fmt: skip
    of_walks: list[Guarantee] = [
        TrajectoryKAnonymity(k=2, k_unit="people"), SegmentKAnonymity(k=2, k_unit="people"),
        SuppressedTrajectories(suppress=0.1, k=2, k_unit="people"),
        SuppressedSegments(suppress=0.1, k=2, k_unit="people", segment_s=60),
        CombinationKAnonymity(k=2, knowledge=2, interval_s=None, k_unit="people"),
        KDeltaAnonymity(k=2, delta_m=1, k_unit="people"),
        OriginalPoints(), SwappedTrajectories(swaps=1, k_unit="people"), NoOwnPoints(k_unit="people"),
        SharedTilePairs(min_group_size=2, tile_size_m=500, lon0=0, lat0=0, k_unit="people"), WellFormedTrajectories(),
    ]  # fmt: skip
    of_sectors: list[Any] = [
        SectorKAnonymity(k=2, k_unit="people"), DisjointSectors(), EveryLocationCounted(k=2), WellFormedSectors(),
    ]  # fmt: skip
    findings = {p.name: p.check(flows) for p in of_flows} | {p.name: p.check(walks) for p in of_walks}
    findings |= {p.name: p.check_sectors(sectors) for p in of_sectors}
    assert not any(finding.violated for finding in findings.values())
    assert {name for name, finding in findings.items() if finding.outcome is Outcome.NOT_CHECKED} == {
        "differential-privacy", "suppression-budget", "period-budget", "sums-of-parent", "min-tiles",
        "true-volumes", "bounded-volumes",
        "trajectory-k-anonymity", "segment-k-anonymity", "suppressed-trajectories", "suppressed-segments",
        "combination-k-anonymity", "original-points", "swapped-trajectories", "no-own-points",
        "shared-tile-pairs", "every-location-counted", "k-delta-anonymity",
    }  # fmt: skip
    assert len(findings) == len(GUARANTEES) - 1, "positions on tile centers are seen in the file"


def test_a_run_publishes_nothing_with_a_violated_or_an_unchecked_privacy_guarantee() -> None:
    crowd, noise, truth = (
        TrajectoryKAnonymity(k=2, k_unit="people"),
        DifferentialPrivacy(epsilon=1, trips=1),
        TrueVolumes(),
    )
    open_ = crowd.check(_walks(A, A))
    require_not_violated([(crowd, open_)])
    with pytest.raises(
        GuaranteeViolatedError, match="trajectory-k-anonymity could not be checked, so nothing was published"
    ):
        require_checked([(crowd, open_)])
    with pytest.raises(GuaranteeViolatedError, match="trajectory-k-anonymity is violated"):
        require_checked([(crowd, crowd.check(_walks(A, B)))])
    require_checked(
        [(noise, noise.make_finding(False, {}, open_=True)), (truth, truth.make_finding(False, {}, open_=True))]
    )
    assert [kind.name for kind in GUARANTEES if kind.of_mechanism] == ["differential-privacy"]


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        (
            ["holds"] * 4 + ["not checked"],
            "4 guarantees can be checked from the files by anyone; 1 cannot be checked from the files alone",
        ),
        (["holds"], "1 guarantee can be checked from the files by anyone"),
        (
            ["not checked"],
            "0 guarantees can be checked from the files by anyone; 1 cannot be checked from the files alone",
        ),
        (["violated", "holds"], "1 guarantee can be checked from the files by anyone; 1 violated"),
    ],
)
def test_what_was_not_checked_is_never_counted_among_what_holds(outcomes: list[str], said: str) -> None:
    assert tally([(outcome, False) for outcome in outcomes], FROM_FILES) == said


def test_what_the_publisher_checked_is_counted_apart() -> None:
    said = "3 guarantees can be checked from the files by anyone; 2 were checked by the publisher against the original"
    assert tally([("holds", False)] * 3 + [("holds", True)] * 2) == said


def test_counts_that_are_not_declared_are_refused() -> None:
    with pytest.raises(KeyError, match="does not declare"):
        FlowKAnonymity(k=2, k_unit="trips").make_finding(False, {"areas": 5})


@given(volume=st.integers(0, 10**9), share=st.integers(0, 1000))
def test_the_budget_is_the_whole_part_of_the_share(volume: int, share: int) -> None:
    """In whole numbers: per mille of a volume, without a float; and the checker agrees with the methods on it."""
    most = share * volume // 1000
    assert within_budget(most, volume, share / 1000) and not within_budget(most + 1, volume, share / 1000)
    assert most == trips_within(share / 1000, volume)


@pytest.mark.parametrize(
    ("suppressed", "volume", "share", "within"),
    [(1, 3, 1 / 3, True), (2, 3, 1 / 3, False), (10**9, 3 * 10**9, 1 / 3, True), (3, 10, 0.3, True), (5, 5, 0.9999999999, False),
     (0, 0, 0.0, True), (1, 0, 1.0, False), (5, 5, 1.0, True)],
)  # fmt: skip
def test_budgets_by_hand(suppressed: int, volume: int, share: float, within: bool) -> None:
    assert within_budget(suppressed, volume, share) is within


def test_a_method_that_reckons_its_budget_wrong_publishes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The function of the methods is broken wherever it was imported: the checker must not use it."""
    rows = [f"{o},{d},{n}" for o, d, n in (("a", "b", 50), ("b", "c", 4), ("c", "a", 4), ("a", "a", 4), ("c", "c", 4))]
    (tmp_path / "flows.csv").write_text("origin,destination,volume\n" + "\n".join(rows) + "\n")
    (tmp_path / "zones.csv").write_text("zone_id,lon,lat\na,2.0,48.0\nb,2.1,48.0\nc,2.2,48.1\n")
    options = {"zones": tmp_path / "zones.csv", "k": 5, "suppress": 0.05, "report": False, "attack": False}
    crowdveil.anonymize(tmp_path / "flows.csv", tmp_path / "right", method="atg-coupled", **options)
    for name, module in list(sys.modules.items()):
        if name.startswith("crowdveil.") and hasattr(module, "trips_within"):
            monkeypatch.setattr(module, "trips_within", lambda budget, volume: volume)
    with pytest.raises(GuaranteeViolatedError, match="suppression-budget is violated"):
        crowdveil.anonymize(tmp_path / "flows.csv", tmp_path / "wrong", method="atg-coupled", **options)
    assert not (tmp_path / "wrong").exists()


def test_every_guarantee_is_listed_and_found_by_its_name() -> None:
    for module in pkgutil.iter_modules(guarantees.__path__):
        importlib.import_module(f"{guarantees.__name__}.{module.name}")
    kinds, every = [guarantees.Guarantee], set()
    while kinds:
        below = kinds.pop().__subclasses__()
        kinds += below
        every |= {kind for kind in below if "name" in vars(kind) and kind.__module__.startswith("crowdveil.")}
    assert set(guarantees.GUARANTEES) == every and len(every) == len(guarantees.GUARANTEES)
