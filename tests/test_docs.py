"""Generated pages are up to date, hand-written ones point to what exists, and examples in them run."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import click
import pytest

import crowdveil
from crowdveil import docs
from crowdveil.cli.main import COMMANDS, cli
from crowdveil.runfiles.ours import request_of

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


def _examples(page: Path) -> list[str]:
    """Return the arguments of `crowdveil` in the blocks of a page that show commands."""
    blocks = re.findall(r"^```(?:sh|console)\n(.*?)^```", page.read_text(), flags=re.M | re.S)
    return re.findall(r"^(?:\$ )?crowdveil ([^|>#\n]*)", "\n".join(blocks).replace("\\\n", " "), flags=re.M)


def _parse(command: click.Command, arguments: list[str], parent: click.Context | None = None) -> None:
    """Parse arguments as the command line does, and run nothing."""
    context = command.make_context(command.name, arguments, parent=parent)
    # The name is `protected_args` before click 8.2.
    rest = [
        *(context._protected_args if hasattr(context, "_protected_args") else context.protected_args),
        *context.args,
    ]
    if isinstance(command, click.Group) and rest:
        _, inner, left = command.resolve_command(context, rest)
        assert inner is not None
        _parse(inner, left, context)


@pytest.mark.parametrize("page", [p for p in PAGES if _examples(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_have_options_that_exist_and_values_that_are_allowed(page: Path) -> None:
    for example in _examples(page):
        with contextlib.suppress(click.exceptions.Exit):  # --help
            _parse(cli, shlex.split(example))


def test_an_option_that_does_not_exist_is_found() -> None:
    for wrong in ("verify out --k 5", "anonymize joint a.csv --kk 5 -o out", "anonymize joint a.csv --k no -o out"):
        with pytest.raises(click.UsageError):
            _parse(cli, shlex.split(wrong))


def test_readme_names_every_command() -> None:
    assert all(f"`crowdveil {name}" in (ROOT / "README.md").read_text() for name in COMMANDS)


def test_the_run_file_in_the_docs_is_a_run_file() -> None:
    import tomllib

    text = (ROOT / "docs" / "run-files.md").read_text()
    content = tomllib.loads(re.findall(r"```toml\n(.*?)```", text, flags=re.S)[0])
    request = request_of(Path("run.toml"), content)
    assert request.method == "suppression" and request.parameters == {"k": 10} and request.options["format"] == "csv"


def test_every_public_name_can_be_had_and_is_documented() -> None:
    for name in crowdveil.__all__:
        assert getattr(crowdveil, name).__doc__, name
    with pytest.raises(AttributeError):
        _ = crowdveil.no_such_name


def test_the_list_of_modules_has_every_file_with_its_subject() -> None:
    listed = docs.pages()[Path("modules.md")]
    for path in docs.PACKAGE.rglob("*.py"):
        if path.name != "__init__.py":
            (row,) = re.findall(rf"^\| `{re.escape(path.name)}` \| (.*) \|$", _section(listed, path.parent), flags=re.M)
            assert row, path


def _section(page: str, folder: Path) -> str:
    name = ".".join((docs.PACKAGE.name, *folder.relative_to(docs.PACKAGE).parts))
    return re.split(r"^## ", page.split(f"\n## {name}\n")[1], flags=re.M)[0]


def test_the_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for folder in (p for p in docs.PACKAGE.iterdir() if any(p.glob("*.py"))):
        assert f"`{folder.name}/`" in text, folder.name


def test_no_package_hides_a_public_name() -> None:
    """Importing a package sets an attribute, which would replace the function of the same name."""
    hidden = [
        name for name in crowdveil.__all__ if (docs.PACKAGE / name).exists() or (docs.PACKAGE / f"{name}.py").exists()
    ]
    assert hidden == ["methods"]  # a package that can be called as the function is
