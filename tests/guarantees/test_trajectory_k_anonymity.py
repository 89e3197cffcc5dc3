"""Equal trajectories of k people: the checker goes red on every file that has fewer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from examples import tries
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import make_trajectories, usual_city

from crowdveil.errors import GuaranteeViolatedError
from crowdveil.guarantees import TrajectoryKAnonymity, guarantee_from_manifest
from crowdveil.guarantees import trajectories as checker
from crowdveil.io.written_release import WrittenRelease
from crowdveil.model.release import TrajectoryRelease
from crowdveil.run import pipeline, releases

Row = tuple[float, float, int]
A: list[Row] = [(2.0, 48.0, 0), (2.1, 48.0, 60)]
B: list[Row] = [(2.0, 48.0, 0), (2.1, 48.0, 60), (2.2, 48.0, 90)]
PEOPLE = TrajectoryKAnonymity(k=3, k_unit="people")


def _written(*listed: list[Row]) -> WrittenRelease:
    rows = [(number, *row) for number, path in enumerate(listed, start=1) for row in path]
    table = pa.table(
        {
            "lat": pa.array([row[2] for row in rows], pa.float64()),
            "lon": pa.array([row[1] for row in rows], pa.float64()),
            "timestamp": pa.array([row[3] for row in rows], pa.timestamp("s")),
            "published_id": pa.array([row[0] for row in rows], pa.int64()),
        }
    )
    return WrittenRelease(Path("out"), table, None, [])


def test_k_equal_ones_of_k_people_pass() -> None:
    good = _written(A, B, A, B, A, B)
    finding = PEOPLE.check(good)
    assert finding.outcome == "not checked" and finding.detail.endswith("files do not show them.")
    assert finding.detail.startswith("6 trajectories in 2 equivalence classes, 0 with fewer than 3; the people")
    behind = PEOPLE.check_with_people(good, np.array([0, 0, 1, 1, 2, 2]))
    assert behind.holds and behind.with_original
    assert PEOPLE.check(_written()).holds and PEOPLE.check_with_people(_written(), np.zeros(0, np.int64)).holds


@pytest.mark.parametrize(
    "third",
    [
        [(2.0, 48.0, 0), (2.1, 48.0, 61)],
        [(2.0, 48.0, 0), (2.10001, 48.0, 60)],
        [(2.0, 48.00001, 0), (2.1, 48.0, 60)],
        [(2.0, 48.0, 0)],
        B,
    ],
    ids=["a second later", "a meter east", "a meter north", "a point less", "a point more"],
)
def test_a_copy_that_differs_is_none(third: list[Row]) -> None:
    finding = PEOPLE.check(_written(A, A, third))
    assert finding.violated and "in 2 equivalence classes, 2 with fewer than 3" in finding.detail
    assert not PEOPLE.check_with_people(_written(A, A, third), np.arange(3)).holds


def test_a_missing_copy_and_equal_points_in_one_trajectory_are_found() -> None:
    assert PEOPLE.check(_written(A, A, A, B, B)).violated
    assert PEOPLE.check(_written(A + A + A)).violated


@settings(deadline=None, max_examples=tries(200))
@given(
    st.lists(
        st.lists(st.sampled_from([(0.0, 0.0, 0), (-0.0, 0.0, 0), (0.0, 0.0, 1)]), min_size=1, max_size=3), max_size=12
    ),
    st.integers(1, 5),
)
def test_classes_are_those_of_equal_rows_bit_for_bit(listed: list[list[Row]], chunk: int) -> None:
    """Few rows, so that trajectories follow equal ones, and shorter ones are equal to the end of those before them."""
    rows = [tuple(str(number) for row in path for number in row) for path in listed]  # -0.0 differs from 0.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checker, "CHUNK", chunk)
        found = checker._equivalence_classes(_written(*listed))
    assert found.tolist() == [list(dict.fromkeys(rows)).index(row) for row in rows]


def test_one_persons_group_is_not_checked_by_the_files_and_violated_with_people() -> None:
    files = _written(A, A, A, B, B, B)
    assert PEOPLE.check(files).outcome == "not checked"
    finding = PEOPLE.check_with_people(files, np.array([7, 7, 7, 0, 1, 2]))
    assert not finding.holds and finding.detail == "2 equivalence classes, 1 with fewer than 3 people."
    assert not PEOPLE.check_with_people(files, np.array([0, 1, 1, 2, 3, 4])).holds
    assert not PEOPLE.check_with_people(files, np.arange(5)).holds, "a trajectory without a person"
    counting = TrajectoryKAnonymity(k=3, k_unit="trajectories")
    assert counting.check_with_people(files, np.array([7, 7, 7, 0, 1, 2])).holds


def test_the_guarantee_says_what_it_counts() -> None:
    assert PEOPLE.statement().endswith("to at least 2 others of other people.")
    again = guarantee_from_manifest("trajectory-k-anonymity", PEOPLE.model_dump(mode="json"))
    assert again == PEOPLE


def test_a_release_that_breaks_the_guarantee_is_not_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A method at fault: the last trajectory ends a second later than its copies."""
    from crowdveil.methods.trajectory import microaggregation

    right = microaggregation.release_groups

    def wrong(*arguments, **named):  # type: ignore[no-untyped-def]
        made = right(*arguments, **named)
        t = made.t.copy()
        t[-1] += 1
        return TrajectoryRelease(made.lon, made.lat, t, made.offsets, source=made.source, facts=made.facts)

    monkeypatch.setattr(microaggregation, "release_groups", wrong)
    data = make_trajectories(usual_city(2), 40, seed=3)
    with pytest.raises(GuaranteeViolatedError, match="trajectory-k-anonymity is violated, so nothing was published"):
        pipeline.run(pipeline.Request("microaggregation", data, tmp_path / "out", {"k": 3}))
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_is_refused_later(tmp_path: Path) -> None:
    data, out = make_trajectories(usual_city(2), 40, seed=3), tmp_path / "out"
    pipeline.run(pipeline.Request("microaggregation", data, out, {"k": 3}))
    assert not any(finding.violated for _, finding in releases.verify(out))
    file = out / "trajectories.parquet"
    pq.write_table(pq.read_table(file).slice(1), file)
    with pytest.raises(GuaranteeViolatedError, match=r"trajectories\.parquet changed since the release was made"):
        releases.verify(out)
