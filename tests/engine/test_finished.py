"""Finished partitions in a folder: kept, taken up again, and never those of another run."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crowdveil.engine import Arrays, FinishedPartitions, LocalEngine, local
from crowdveil.errors import OutputError

KEY = {"parameters": {"k": 10, "share": 0.1}, "data": "abc", "version": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def work(partition: int) -> Arrays:
    """One array of each sort that could go wrong: empty, no dimension, two, in the order of Fortran, small, text."""
    return (
        np.zeros(0, np.int64),
        np.array(partition / 3),
        np.arange(partition, dtype=np.int32),
        np.asfortranarray(np.arange(6.0).reshape(2, 3) + partition),
        np.array([True, False]),
        np.array([f"{partition}é"]),
    )


def same(one: list[Arrays], other: list[Arrays]) -> bool:
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    )


class Counted:
    """The work, with a list of what was done; fails at a partition if one is given."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.done: list[int] = []
        self.fail_at = fail_at

    def __call__(self, partition: int) -> Arrays:
        if partition == self.fail_at:
            raise RuntimeError("stopped here")
        self.done.append(partition)
        return work(partition)


def run(folder: Path, task: Any = work, count: int = 40, key: Any = KEY) -> tuple[FinishedPartitions, list[Arrays]]:
    finished = FinishedPartitions(folder, key)
    return finished, LocalEngine(2, finished).map(task, count)


def fail(folder: Path, at: int) -> Counted:
    """A run that fails on the way, and what it did before."""
    task = Counted(at)
    with pytest.raises(RuntimeError, match="stopped here"):
        run(folder, task)
    return task


def test_a_run_goes_on_where_it_failed(folder: Path) -> None:
    before, after = fail(folder, 25), Counted()
    finished, results = run(folder, after)
    assert same(results, [work(n) for n in range(40)])
    assert sorted(before.done + after.done) == list(range(40)), "each partition is done once"
    assert len(before.done) >= 24 and (finished.kept, finished.total) == (40, 40)


def test_what_was_kept_can_be_written_to(folder: Path) -> None:
    run(folder)
    _, results = run(folder)
    results[7][2][:] = 0  # a view of what was read would refuse
    assert all(a.flags.aligned and a.flags.writeable for arrays in results for a in arrays)


def test_progress_begins_at_what_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "TICK_S", 0.001)
    fail(folder, 25)
    reported: list[int] = []

    def slow(partition: int) -> Arrays:
        time.sleep(0.005)
        return work(partition)

    LocalEngine(2, FinishedPartitions(folder, KEY)).map(slow, 40, lambda done, total: reported.append(done))
    assert reported[0] >= 24 and reported == sorted(set(reported)) and reported[-1] == 40


def test_an_interrupt_keeps_what_is_done(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "TICK_S", 0.001)

    def slow(partition: int) -> Arrays:
        time.sleep(0.002)
        return work(partition)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    finished = FinishedPartitions(folder, KEY)
    with pytest.raises(KeyboardInterrupt):
        LocalEngine(2, finished).map(slow, 10_000, stop)
    assert 0 < finished.kept == len(FinishedPartitions(folder, KEY).load(10_000)) < 10_000


def test_an_interrupt_right_after_a_batch_was_saved_counts_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished, plain = FinishedPartitions(folder, KEY), Path.replace
    finished.load(40)

    def replaced(path: Path, target: Path) -> None:
        plain(path, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replaced)
        with pytest.raises(KeyboardInterrupt):
            finished.save({n: work(n) for n in (3, 4)})
    assert finished.kept == len(FinishedPartitions(folder, KEY).load(40)) == 2


def test_batches_are_put_away_while_work_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run leaves is all that there will ever be, so it must not wait for the end."""
    monkeypatch.setattr(local, "TICK_S", 0.001)
    monkeypatch.setattr(local, "KEEP_S", 0.01)
    seen: list[int] = []

    def look(partition: int) -> Arrays:
        time.sleep(0.005)
        seen.append(len(list(folder.glob("*.npz"))))
        return work(partition)

    run(folder, look)
    assert seen[0] == 0 and seen[-1] >= 3
    again = Counted()
    run(folder, again)
    assert again.done == []


@pytest.mark.parametrize("left", [0.0, 0.3, 0.9, 0.999])
def test_a_batch_that_was_cut_short_is_done_again(folder: Path, left: float) -> None:
    fail(folder, 25)
    (batch,) = folder.glob("*.npz")
    content = batch.read_bytes()
    batch.write_bytes(content[: int(len(content) * left)])
    again = Counted()
    _, results = run(folder, again)
    assert sorted(again.done) == list(range(40)) and same(results, [work(n) for n in range(40)])
    assert len(FinishedPartitions(folder, KEY).load(40)) == 40


def test_a_batch_with_a_changed_byte_is_done_again(folder: Path) -> None:
    run(folder)
    (batch,) = folder.glob("*.npz")
    content = bytearray(batch.read_bytes())
    content[len(content) // 2] ^= 1
    batch.write_bytes(content)
    again = Counted()
    _, results = run(folder, again)
    assert sorted(again.done) == list(range(40)) and same(results, [work(n) for n in range(40)])


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04"])
def test_a_file_that_is_no_batch_is_passed_over(folder: Path, content: bytes) -> None:
    fail(folder, 25)
    (folder / "1-39.npz").write_bytes(content)
    (folder / "1-x.npz").write_bytes(content)
    assert same(run(folder)[1], [work(n) for n in range(40)])


def test_half_written_files_of_a_killed_run_do_no_harm(folder: Path) -> None:
    folder.mkdir()
    (folder / "key.json-17.partial").write_text("{")
    fail(folder, 25)
    (folder / "1-3.npz-17.partial").write_bytes(b"PK")
    finished, results = run(folder)
    assert same(results, [work(n) for n in range(40)])
    finished.remove()
    assert not folder.exists()


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"parameters": {"k": 11, "share": 0.1}}, "(other parameters)"),
        ({"data": "abd"}, "(other data)"),
        ({"version": "2", "data": "x"}, "(other data and version)"),
        ({"version": "2", "data": "x", "parameters": {}}, "(other parameters, data and version)"),
        ({"seed": 0}, "(other seed)"),
    ],
)
def test_steps_of_another_run_are_refused(folder: Path, other: dict[str, Any], named: str) -> None:
    fail(folder, 25)
    before = sorted(p.name for p in folder.iterdir())
    with pytest.raises(OutputError) as refused:
        FinishedPartitions(folder, {**KEY, **other})
    assert named in str(refused.value) and "delete the folder, or name another" in str(refused.value)
    assert "11" not in str(refused.value).replace(str(folder), ""), "kinds are named, and not values"
    assert sorted(p.name for p in folder.iterdir()) == before


def test_another_number_of_steps_is_refused(folder: Path) -> None:
    fail(folder, 25)
    with pytest.raises(OutputError, match="other number of time steps"):
        run(folder, count=41)


def test_the_order_of_names_in_the_key_does_not_matter(folder: Path) -> None:
    fail(folder, 25)
    FinishedPartitions(folder, dict(reversed(KEY.items())))


def test_two_rounds_of_a_method_are_kept_apart(folder: Path) -> None:
    def other(partition: int) -> Arrays:
        return (np.array([-partition]),)

    finished = FinishedPartitions(folder, KEY)
    LocalEngine(2, finished).map(work, 40)
    with pytest.raises(ZeroDivisionError):
        LocalEngine(2, finished).map(lambda n: other(n) if n < 30 else (np.array(1 // 0),), 35)
    again = FinishedPartitions(folder, KEY)
    assert same(LocalEngine(2, again).map(work, 40), [work(n) for n in range(40)])
    assert same(LocalEngine(2, again).map(other, 35), [other(n) for n in range(35)])


def test_a_folder_with_other_things_is_refused_and_left_alone(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(OutputError, match="holds no finished time steps"):
        FinishedPartitions(folder, KEY)
    (folder / "key.json").write_text('{"key": 5}')
    with pytest.raises(OutputError, match="holds no finished time steps"):
        FinishedPartitions(folder, KEY)
    assert (folder / "thesis.txt").read_text() == "years of work"


def test_a_file_in_place_of_the_folder_is_refused(folder: Path) -> None:
    folder.write_text("x")
    with pytest.raises(OutputError, match="this is a file"):
        FinishedPartitions(folder, KEY)


def test_a_folder_that_cannot_be_made_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="cannot be kept there"):
        run(tmp_path / "file" / "kept")


def test_removing_leaves_what_is_not_ours(folder: Path) -> None:
    finished, _ = run(folder)
    (folder / "thesis.txt").write_text("years of work")
    finished.remove()
    assert [p.name for p in folder.iterdir()] == ["thesis.txt"]
    (folder / "thesis.txt").unlink()
    finished.remove()
    assert not folder.exists()
    finished.remove()


def test_the_folder_is_for_its_owner_alone(folder: Path) -> None:
    run(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
    assert json.loads((folder / "key.json").read_text()) == {"key": KEY, "partitions": [40]}


def test_nothing_is_made_before_partitions_are_asked_for(folder: Path) -> None:
    finished = FinishedPartitions(folder, KEY)
    assert not finished.used and not folder.exists()
    finished.load(3)
    assert finished.used and folder.exists()


@pytest.mark.parametrize("array", [np.array([None]), np.zeros(2, [("a", "i4"), ("b", "f8")])])
def test_arrays_that_would_not_come_back_the_same_are_refused(folder: Path, array: Any) -> None:
    with pytest.raises(TypeError, match="plain arrays"):
        run(folder, lambda partition: (array,))
