"""Machine code of kernels is kept on the disk, in a folder of this user alone that is named after the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from crowdveil.kernels import _jit
from crowdveil.kernels._jit import kernel


@pytest.fixture(autouse=True)
def no_other_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for folders of machine code inside the test's own."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "given"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_kernel_is_kept_on_the_disk(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "from crowdveil.kernels._jit import kernel\n@kernel\ndef double(x):\n    return 2 * x\n"
    )
    code = "from user import double; print(double(4), sum(double.stats.cache_hits.values()))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert ran == ["8 0\n", "8 1\n"]


def test_a_change_of_any_kernel_makes_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = tmp_path / "kernels"
    shutil.copytree(Path(_jit.__file__).parent, copied)
    monkeypatch.setattr(_jit, "__file__", str(copied / "_jit.py"))
    before = _jit._cache_folder()
    assert _jit._cache_folder() == before
    with (copied / "od" / "structures.py").open("a") as file:
        file.write("\n")
    assert _jit._cache_folder() != before


def test_the_folder_is_private(tmp_path: Path) -> None:
    made = _jit._cache_folder()
    assert made.parent == tmp_path / "given" and made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("fault", ["open to others", "a link", "a file", "another's", "in another's", "in one for all"])
def test_a_folder_that_another_user_could_have_made_is_not_used(fault: str, tmp_path: Path) -> None:
    parent, name = tmp_path / "given", f"kernels-{_jit._digest()}"
    parent.mkdir()
    expected = parent / name
    if fault == "a link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        expected.symlink_to(tmp_path / "theirs")
    elif fault == "a file":
        expected.touch()
    else:
        expected.mkdir(mode=0o777 if fault == "open to others" else 0o700)
        if fault == "open to others":
            expected.chmod(0o777)
        elif fault == "in one for all":
            parent.chmod(0o777)
        elif os.getuid() == 0:
            os.chown(parent if fault == "in another's" else expected, 12345, 12345)
        else:
            pytest.skip("only root can give a folder away")
    assert _jit._cache_folder() == tmp_path / "home" / "crowdveil" / name


def test_a_process_that_can_write_nowhere_else_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_jit, "_is_private", lambda folder: False)
    one, other = _jit._cache_folder(), _jit._cache_folder()
    assert one != other and {one.parent, other.parent} == {tmp_path} and one.stat().st_mode & 0o777 == 0o700


def test_other_users_of_numba_keep_their_folder() -> None:
    before = numba.config.CACHE_DIR

    @kernel
    def double(x: int) -> int:
        return 2 * x

    assert before == numba.config.CACHE_DIR and double(4) == 8
