"""Generated pages are up to date, hand-written ones point to what exists, and examples in them run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crowdveil
from crowdveil import docs
from crowdveil.cli.main import COMMANDS
from crowdveil.runfiles.ours import _from_ours

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_no_generated_page_is_stale() -> None:
    assert docs.stale() == []


def test_a_stale_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0 and docs.main(["--check"]) == 0
    (tmp_path / "methods" / "suppression.md").write_text("old")
    (tmp_path / "methods" / "gone.md").write_text("of a method that was removed")
    assert {p.name for p in docs.stale()} == {"suppression.md", "gone.md"}
    assert docs.main([]) == 0 and not (tmp_path / "methods" / "gone.md").exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_in_examples_exist(page: Path) -> None:
    for name in re.findall(r"^\s*crowdveil ([a-z][a-z-]*)", page.read_text(), flags=re.M):
        assert name in COMMANDS, name


def test_readme_names_every_command() -> None:
    assert all(f"`crowdveil {name}" in (ROOT / "README.md").read_text() for name in COMMANDS)


def test_the_run_file_in_the_docs_is_a_run_file() -> None:
    import tomllib

    text = (ROOT / "docs" / "run-files.md").read_text()
    content = tomllib.loads(re.findall(r"```toml\n(.*?)```", text, flags=re.S)[0])
    request = _from_ours(Path("run.toml"), content, False)
    assert request.method == "suppression" and request.parameters == {"k": 10} and request.options["format"] == "csv"


def test_every_public_name_can_be_had_and_is_documented() -> None:
    for name in crowdveil.__all__:
        assert getattr(crowdveil, name).__doc__, name
    with pytest.raises(AttributeError):
        _ = crowdveil.no_such_name


def test_the_plan_names_every_file() -> None:
    plan = (ROOT / "ARCHITECTURE.md").read_text()
    for path in (ROOT / "src" / "crowdveil").rglob("*.py"):
        room = path.relative_to(ROOT / "src" / "crowdveil")
        if (
            room.parts[0] in ("cli", "methods", "kernels", "guarantees", "synth", "report")
            or path.name == "__init__.py"
        ):
            continue
        assert path.name in plan, room
