"""Files of the project that must agree: version, dependencies, constraints, extras, license."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import crowdveil
import versions
from crowdveil.cli import main as cli

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {name: lines for name, lines in PROJECT["optional-dependencies"].items() if name not in ("dev", "test")}
MODULES = {
    "scikit-learn": "sklearn",
    "python-multipart": "python_multipart",
    "prometheus-client": "prometheus_client",
    "myst-parser": "myst_parser",
    "sphinx-click": "sphinx_click",
}


def test_the_version_stands_in_one_place() -> None:
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    assert f"\nversion: {crowdveil.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    using = [p for p in (ROOT / "src").rglob("*.py") if re.search(r"version\(.crowdveil.\)", p.read_text())]
    assert using == []


def test_every_declared_package_has_a_lowest_version_and_a_tested_one() -> None:
    lowest = dict(line.split("==") for line in versions.lowest())
    tested = dict(re.findall(r"^([\w.-]+)==(.*)$", (ROOT / "constraints.txt").read_text(), flags=re.M))
    assert set(lowest) - set(tested) <= {"pyspark"}  # installed by `make test-all` alone
    for name, least in lowest.items():
        if name in tested:
            assert [int(x) for x in least.split(".")] <= [int(x) for x in tested[name].split(".")], name


def test_a_package_without_a_lowest_version_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = tmp_path / "pyproject.toml"
    made.write_text('[project]\nname = "x"\ndependencies = ["numpy"]\n[project.optional-dependencies]\n')
    monkeypatch.setattr(versions, "PYPROJECT", made)
    with pytest.raises(SystemExit, match="numpy: expected name>=version"):
        versions.lowest()


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_missing_module_names_the_extra_that_installs_it(
    extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [re.split(r"[\[>]", line)[0] for line in EXTRAS[extra]]
    for name in names:
        if name == "crowdveil" or (name, extra) == ("pandas", "spark"):  # has an extra of its own name
            continue
        module = MODULES.get(name, name)

        def fail(module: str = module, **_how: object) -> None:
            raise ModuleNotFoundError(f"No module named {module!r}", name=f"{module}.inner")

        monkeypatch.setattr(cli.cli, "main", fail)
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        assert f"crowdveil[{extra}]" in capsys.readouterr().err


def test_the_license_is_named_and_its_notice_is_there() -> None:
    assert PROJECT["license"] == "Apache-2.0" and PROJECT["license-files"] == ["LICENSE"]
    assert "Apache License, Version 2.0" in (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("page", sorted(ROOT.glob("*.md")), ids=lambda page: page.name)
def test_links_of_the_top_pages_lead_to_files(page: Path) -> None:
    """Those of the docs are checked by the build of the site."""
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text())
    assert [link for link in links if not (ROOT / link).exists()] == []
