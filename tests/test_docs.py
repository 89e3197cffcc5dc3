"""Generated pages are up to date, hand-written ones point to what exists, and examples in them run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import crowdveil
import links
import pages as docs
import readability
import reference
from crowdveil.cli.main import COMMANDS
from crowdveil.runfiles.ours import request_of

PACKAGE = Path(crowdveil.__file__).parent
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    """Return the generated pages, which take seconds."""
    return docs.pages()


def test_no_generated_page_is_stale(pages: dict[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "pages", lambda: pages)
    assert docs.stale() == []


def test_a_stale_page_is_found(pages: dict[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs, "DOCS", tmp_path)
    generated = {path: text for path, text in pages.items() if ".." not in path.parts}
    monkeypatch.setattr(docs, "pages", lambda: generated)
    assert docs.main(["--check"]) == 1
    assert docs.main([]) == 0 and docs.main(["--check"]) == 0
    (tmp_path / "methods" / "suppression.md").write_text("old")
    (tmp_path / "methods" / "gone.md").write_text("of a method that was removed")
    assert {p.name for p in docs.stale()} == {"suppression.md", "gone.md"}
    assert docs.main([]) == 0 and not (tmp_path / "methods" / "gone.md").exists()


def test_the_reference_has_every_command_and_every_public_name() -> None:
    assert all(f"\n## crowdveil {name}\n" in (ROOT / "docs" / "cli.md").read_text() for name in COMMANDS)
    assert sorted(name for names in reference._PYTHON.values() for name in names) == crowdveil.__all__


def test_no_page_names_a_folder_of_the_machine_that_made_it() -> None:
    assert not [page.name for page in (ROOT / "docs").rglob("*.md") if f"{Path.home()}/" in page.read_text()]


def test_the_readme_is_short_and_has_a_picture() -> None:
    text = (ROOT / "README.md").read_text()
    (picture,) = re.findall(r"^!\[[^\]]{40,}\]\((.+)\)$", text, flags=re.M)
    assert len(text.splitlines()) <= 130 and (ROOT / picture).stat().st_size < 300_000


@pytest.mark.parametrize("page", links.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert links.problems(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A title, here\n")
    (tmp_path / "page.md").write_text(
        "[a](none.md) [b](other.md#nothing) [c](other.md#a-title-here) ![](x.png) `[d](no)`\n"
    )
    assert [problem.split(":")[0] for problem in links.problems(tmp_path / "page.md")] == [
        "none.md", "other.md#nothing", "x.png", "x.png",
    ]  # fmt: skip


def test_every_page_has_an_example_and_describes_its_pictures() -> None:
    """Reference pages of the site have theirs from the command line, Python and REST."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        text = page.read_text()
        assert re.search(r"^```\w", text, re.M), f"{page.name} has no example"
        for described in re.findall(r"!\[([^\]]*)\]\(", text):
            assert len(described.split()) >= 8, f"{page.name}: describe the picture {described!r}"


@pytest.mark.parametrize("page", readability.pages(), ids=lambda p: str(p.relative_to(ROOT)))
def test_sentences_are_short_and_words_are_those_of_the_glossary(page: Path) -> None:
    text = page.read_text()
    median, ninetieth, _ = readability.lengths(text)
    assert median <= readability.MEDIAN and ninetieth <= readability.NINETIETH
    assert [word for part in readability.prose(text) for word in readability.AVOIDED.findall(part)] == []


def test_sentence_lengths_are_counted() -> None:
    text = "# A title of five words\n\nOne two three. Four `x y z` six!\n\n- a list item\n\n| not | counted |\n\n```sh\nno\n```\n"
    assert readability.sentences(text) == ["One two three.", "Four code six!", "a list item"]
    assert readability.lengths(text) == (3, 3, 3)


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


def test_the_architecture_names_every_package() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    for folder in (p for p in PACKAGE.iterdir() if any(p.glob("*.py"))):
        assert f"`{folder.name}/`" in text, folder.name


def test_no_package_hides_a_public_name() -> None:
    """Importing a package sets an attribute, which would replace the function of the same name."""
    hidden = [name for name in crowdveil.__all__ if (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists()]
    assert hidden == ["methods"]  # a package that can be called as the function is
