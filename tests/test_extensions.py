"""Entry points and versions of installed packages are found without reading every description."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from crowdveil import extensions

POINTS = "[console_scripts]\nours = crowdveil.cli.main:main\n{group}"


@pytest.fixture
def fresh() -> Iterator[None]:
    """Nothing that was found before, or is found in the test, stays known."""
    known = extensions.installed, extensions.installed_version, extensions._descriptions, extensions._named_anywhere
    for function in known:
        function.cache_clear()
    yield
    for function in known:
        function.cache_clear()


def _package(folder: Path, group: str = "") -> None:
    described = folder / "Some_Package-1.5.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.5\n\nVersion: 9\n")
    (described / "entry_points.txt").write_text(POINTS.format(group=group))


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("package", ["numpy", "numba", "pyarrow"])
def test_versions_are_those_of_python(package: str) -> None:
    assert extensions.installed_version(package) == metadata.version(package)


@pytest.mark.usefixtures("fresh")
def test_the_first_description_on_the_path_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _package(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "missing"), str(tmp_path), *sys.path])
    assert extensions.installed_version("some-package") == "1.5"
    with pytest.raises(metadata.PackageNotFoundError):
        extensions.installed_version("not-installed-anywhere")


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("group", ["", "[crowdveil.methods]\nmine = mine:METHOD\n"])
def test_entry_points_are_found_where_a_package_names_our_group(
    group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(tmp_path, group)
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if f is extensions.PathFinder])
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert extensions._named_anywhere() == bool(group)
    assert list(extensions.installed("crowdveil.methods")) == (["mine"] if group else [])


@pytest.mark.usefixtures("fresh")
def test_archives_are_left_to_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "packages.zip").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "packages.zip")])
    assert extensions._named_anywhere()
