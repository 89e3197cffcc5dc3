"""Commands in the README and the docs parse with the options that exist, and pages run from top to bottom in an empty folder.

Blocks of `sh` and `python` are run in order. Blocks of `console` show what needs a service, a cluster or other data: their
commands are parsed here, and run in `test_doc_services.py` and `test_doc_examples.py`.
The guides that also show output have a test of their own (`test_guides.py`).
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from doc_pages import PAGES, ROOT, blocks, commands

from crowdveil.cli.main import cli

GUIDES = ("tutorial-nyc-taxi.md", "tutorial-land-use.md", "worked-example.md")
QUICK = ("docs/glossary.md",)
OTHER_TOOLS = {"--check", "--unix-socket", "--no-index", "--find-links", "--conf", "--archives", "--schema"}
"""Options of curl, pip, spark-submit and our modules that pages mention."""


def parse(arguments: list[str]) -> None:
    """Parse a command as the command line does, down to the last subcommand; nothing is run."""
    context = click.Context(cli, info_name="crowdveil")
    command: click.Command = cli
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, found, arguments = command.resolve_command(context, arguments)
        assert found is not None and name is not None
        command, context = found, click.Context(found, info_name=name, parent=context)
    if not arguments or arguments[0] not in ("--help", "--version"):
        command.make_context(context.info_name, list(arguments), parent=context.parent)


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_have_options_that_exist(page: Path) -> None:
    for arguments in commands(page):
        try:
            parse(arguments)
        except click.ClickException as error:
            raise AssertionError(f"crowdveil {shlex.join(arguments)}: {error.format_message()}") from None


@pytest.mark.parametrize(
    "wrong", ["compare x --nothing", "anonymize joint -k ten x -o y", "anonymize jont x -o y", "anonymize joint x"]
)
def test_a_wrong_command_is_found(wrong: str) -> None:
    with pytest.raises(click.ClickException):
        parse(wrong.split())


def runnable(page: Path) -> bool:
    return page.name not in GUIDES and any(kind != "console" for kind, _ in blocks(page))


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=() if named(p) in QUICK else pytest.mark.slow) for p in PAGES if runnable(p)],
    ids=named,
)
def test_a_page_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, object] = {"__name__": "page"}
    for kind, body in blocks(page):
        if kind == "sh":
            called = ["bash", "-e", "-c", body]
            environment = {**os.environ, "PATH": path}
            done = subprocess.run(called, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{body}\n{done.stdout}\n{done.stderr}"
        elif kind == "python":
            with contextlib.chdir(tmp_path), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(body, named(page), "exec"), names)


@pytest.fixture(scope="module")
def known_options() -> set[str]:
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
def test_options_in_the_text_exist(page: Path, known_options: set[str]) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    spans = re.findall(r"`([^`\n]+)`", text)
    named_options = {option for span in spans for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", span)}
    assert named_options - known_options == set()
