"""Either all of it is written, or nothing."""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

import pytest

from crowdveil.errors import OutputError
from crowdveil.io import atomic
from crowdveil.io.atomic import MARK, new_file, new_folder

DEAD = 2**22 + 12345
"""A process number that Linux never gives."""


class HeartAttackError(BaseException):
    pass


def left_by(process: int, name: str) -> str:
    return f".{name}{MARK}-{socket.gethostname()}-{process}"


@pytest.mark.parametrize("target", ["out", "a/b/out", "o[u]t", "out.v1.csv"])
def test_a_folder_appears_when_it_is_whole(target: str, tmp_path: Path) -> None:
    with new_folder(tmp_path / target, overwrite=False, mark_file="m") as folder:
        (folder / "m").write_text("x")
        assert not (tmp_path / target).exists()
        assert folder.parent == (tmp_path / target).parent, "on the same file system"
    assert [p.name for p in (tmp_path / target).iterdir()] == ["m"]
    assert [p.name for p in (tmp_path / target).parent.iterdir()] == [Path(target).name]


@pytest.mark.parametrize("target", ["out.csv", "a/b/out.parquet", "o[u]t.omx", "out.v1.csv", "out.CSV"])
def test_a_file_appears_when_it_is_whole(target: str, tmp_path: Path) -> None:
    with new_file(tmp_path / target, overwrite=False) as file:
        assert file.suffix == Path(target).suffix, "writers go by the ending"
        assert MARK in file.name, "the next run must know it"
        assert str(os.getpid()) in file.name, "two runs must not meet"
        file.write_text("x")
        assert not (tmp_path / target).exists()
    assert (tmp_path / target).read_text() == "x"
    assert [p.name for p in (tmp_path / target).parent.iterdir()] == [Path(target).name]


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyboardInterrupt(), HeartAttackError(), OSError(errno.ENOSPC, "x")]
)
@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_when_anything_goes_wrong(error: BaseException, there: bool, tmp_path: Path) -> None:
    where = tmp_path / "a" / "b"
    if there:
        where.mkdir(parents=True)
    expected = OutputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected), new_folder(where / "out", overwrite=False, mark_file="m") as folder:  # noqa: PT012
        (folder / "half").write_text("x")
        raise error
    with pytest.raises(expected), new_file(where / "out.csv", overwrite=False) as file:  # noqa: PT012
        file.write_text("x")
        raise error
    assert sorted(p.name for p in tmp_path.rglob("*")) == (["a", "b"] if there else [])


def test_an_earlier_release_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "m").write_text("old")
    (tmp_path / "out" / "more").write_text("old")
    with pytest.raises(OutputError, match="exists"), new_folder(tmp_path / "out", overwrite=False, mark_file="m"):
        pass
    with new_folder(tmp_path / "out", overwrite=True, mark_file="m") as folder:
        (folder / "m").write_text("new")
        assert (tmp_path / "out" / "m").read_text() == "old"
    assert {p.name: p.read_text() for p in (tmp_path / "out").iterdir()} == {"m": "new"}
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_earlier_release_stays_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "m").write_text("old")
    rename = Path.rename

    def fail_second(self: Path, target: Path) -> Path:
        if self.name.startswith(".") and target.name == "out" and not self.name.endswith(".old"):
            raise OSError(errno.EIO, "broken disk")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_second)
    with (
        pytest.raises(OutputError, match="cannot be written"),
        new_folder(tmp_path / "out", overwrite=True, mark_file="m") as folder,
    ):
        (folder / "m").write_text("new")
    assert (tmp_path / "out" / "m").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_only_a_release_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with new_folder(tmp_path / "out", overwrite=False, mark_file="m") as folder:  # an empty folder is nobody's
        (folder / "diary").write_text("x")
    with (
        pytest.raises(OutputError, match="holds no release"),
        new_folder(tmp_path / "out", overwrite=True, mark_file="m"),
    ):
        pass
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(OutputError, match="this is a file"),
        new_folder(tmp_path / "file", overwrite=True, mark_file="m"),
    ):
        pass
    with pytest.raises(OutputError, match="this is a folder"), new_file(tmp_path / "out", overwrite=True):
        pass
    with pytest.raises(OutputError, match="exists"), new_file(tmp_path / "file", overwrite=False):
        pass
    with new_file(tmp_path / "file", overwrite=True) as file:
        file.write_text("new")
    assert (tmp_path / "file").read_text() == "new"


@pytest.mark.parametrize("name", ["out", "o[u]t*"])
def test_what_dead_runs_left_is_swept_and_what_others_do_is_not(name: str, tmp_path: Path) -> None:
    alive = os.getppid()
    for process in (DEAD, alive):
        (tmp_path / left_by(process, name)).mkdir()
        (tmp_path / left_by(process, name) / "half").write_text("x")
        (tmp_path / f"{left_by(process, name)}.csv").write_text("x")
    other_target, other_machine = left_by(DEAD, "other"), f".{name}{MARK}-elsewhere-{DEAD}"
    (tmp_path / other_target).mkdir()
    (tmp_path / other_machine).mkdir()
    with new_folder(tmp_path / name, overwrite=False, mark_file="m") as folder:
        (folder / "m").write_text("x")
    wanted = {name, left_by(alive, name), f"{left_by(alive, name)}.csv", other_target, other_machine}
    assert {p.name for p in tmp_path.iterdir()} == wanted


def test_our_own_number_from_an_earlier_life_is_swept(tmp_path: Path) -> None:
    """In a container every run may have the same process number."""
    (tmp_path / left_by(os.getpid(), "out")).mkdir()
    with new_folder(tmp_path / "out", overwrite=False, mark_file="m") as folder:
        assert not list(folder.iterdir())


@pytest.mark.parametrize(("number", "says"), [(errno.ENOSPC, "full"), (errno.EDQUOT, "full"), (errno.EFBIG, "full"),
                                              (errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only")])  # fmt: skip
def test_why_something_was_not_written_is_reported(number: int, says: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=says), atomic.write_errors(tmp_path / "out"):
        raise OSError(number, os.strerror(number))
