"""Code on the pages runs from top to bottom in an empty folder, and prints the numbers that the page shows.

Blocks of `sh` and `python` are run in order; a block of `text` after them has the numbers that they print. A block whose first
line names a file (`csv flows.csv`) is that file. Blocks of `console` need a service, a cluster or other data: they are parsed
here, and those of the service and of Spark run in `test_doc_services.py`. Only parsed are those with public or large
data (getting started, reproduction, benchmarks), a cluster or a catalog (`--table` and `spark-submit` on the page of Spark), and
systemd, podman, backups and sources on the page of the service's operator. On the page of the papers commands also stand in
tables.
"""

from __future__ import annotations

import contextlib
import io
import math
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest
from doc_pages import PAGES, ROOT, commands, parts

import crowdveil
from crowdveil.cli.main import cli

PAPERS, TAXIS = "docs/coverage.md", "docs/tutorial-nyc-taxi.md"
QUICK = ("docs/glossary.md",)
OTHER_TOOLS = {"--small", "--factory", "--no-index", "--find-links", "--conf", "--archives", "--schema"}
"""Options of benchmarks, curl, pip and spark-submit that pages mention."""
NUMBER = re.compile(r"(?<!area-)\b\d[\d,]*(?:\.\d+)?\b")


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def parse(arguments: list[str]) -> None:
    """Parse a command as the command line does, down to the last subcommand; nothing is run."""
    context = click.Context(cli, info_name="crowdveil")
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        if command.name == "anonymize" and Path(arguments[0]).suffix:  # the usual method for the file
            arguments = ["microaggregation" if "cabs" in arguments[0] else "joint", *arguments]
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None and name is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    if not arguments or arguments[0] not in ("--help", "--version"):
        command.make_context(context.info_name, list(arguments), parent=context.parent)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_parse(page: Path) -> None:
    for arguments in commands(page):
        try:
            parse(arguments)
        except click.ClickException as error:
            raise AssertionError(f"crowdveil {shlex.join(arguments)}: {error.format_message()}") from None


@pytest.mark.parametrize(
    "wrong", ["compare x --nothing", "anonymize jont x -o y", "anonymize joint x y -o z", "ledger forget ledger/"]
)
def test_a_wrong_command_is_found(wrong: str) -> None:
    with pytest.raises(click.ClickException):
        parse(wrong.split())


@pytest.fixture(scope="module")
def options() -> set[str]:
    found: set[str] = set()

    def collect(command: click.Command, context: click.Context) -> None:
        for param in command.get_params(context):
            found.update((*param.opts, *param.secondary_opts))
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                collect(below, click.Context(below, info_name=name, parent=context))

    collect(cli, click.Context(cli, info_name="crowdveil"))
    return found | OTHER_TOOLS


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_options_in_the_text_exist(page: Path, options: set[str]) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    spans = re.findall(r"`([^`\n]+)`", text)
    assert {option for span in spans for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", span)} <= options


def shell(body: str, folder: Path, code: int = 0) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", body], cwd=folder, env={**os.environ, "PATH": path}, text=True, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == code, f"{body}\n{done.stdout}"
    return done.stdout


def python(body: str, names: dict[str, object]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(body, "page", "exec"), names)
    return out.getvalue()


def numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def run(page: Path, folder: Path, tolerance: float = 0.0) -> None:
    """Run a page in a folder, and compare the numbers that it shows with those that are printed."""
    names: dict[str, object] = {"__name__": "page"}
    printed = ""
    for (kind, name, body), (_, _, shown) in pairwise([*parts(page), ("", "", "")]):
        if name:
            (folder / name).write_text(body)
        elif kind == "sh":
            printed = shell(body, folder, code=2 if shown.startswith("crowdveil: ") and "exit code" not in shown else 0)
        elif kind == "python":
            with contextlib.chdir(folder):
                printed = python(body, names)
        elif kind == "text":
            made, given = numbers(printed), numbers(body)
            assert len(made) == len(given), f"{body}\nis not what is printed:\n{printed}"
            wrong = [(a, b) for a, b in zip(made, given, strict=True) if not math.isclose(a, b, rel_tol=tolerance)]
            assert not wrong, f"(printed, on the page): {wrong}\n{printed}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=() if named(p) in QUICK else pytest.mark.slow)
        for p in PAGES
        if named(p) != TAXIS and any(kind in ("sh", "python") for kind, _, _ in parts(p))
    ],
    ids=named,
)
def test_a_page_runs(page: Path, tmp_path: Path) -> None:
    run(page, tmp_path)
    if named(page) == PAPERS:
        spans = re.findall(r"`(crowdveil [a-z-]+ [^`]+)`", page.read_text())
        assert len(spans) > 40
        for span in spans:
            shell(span, tmp_path)


@pytest.mark.slow
@pytest.mark.realdata
def test_the_taxi_tutorial_runs(realdata: Path, tmp_path: Path) -> None:
    """Where several partitions are equally good another may be taken one day, so its numbers may be a little off."""
    (tmp_path / "nyc_taxi").symlink_to(realdata / "nyc_taxi")
    run(ROOT / TAXIS, tmp_path, tolerance=0.1)


def test_public_names_exist_and_are_documented() -> None:
    for name in crowdveil.__all__:
        assert getattr(crowdveil, name).__doc__, name
    with pytest.raises(AttributeError):
        _ = crowdveil.no_such_name
